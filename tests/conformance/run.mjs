//! Runs cases one after the other against a door. Runs in Node and in pages.

import { Context } from "./context.mjs";

/** Software GPUs are slow. */
const CASE_LIMIT_MS = 180_000;

/** Resets what a case may have changed. */
const RESET = [
  { failAfterTokens: null },
  { delayPrefillMs: 0 },
  { delayStepMs: 0 },
  { switches: {} },
];

/** The purpose of the model behind a door. One that sees generates text, too. */
async function purposeOf(context) {
  const { data } = (await context.request("/v1/models")).body;
  const { capabilities } = data.find(({ id }) => id === context.info.modelId);
  if (capabilities.includes("rerank")) return "ranks";
  return capabilities.includes("embeddings") ? "embeds" : "text";
}

/** One result per case of `cases` that supports the door and its kind of model: `{ id, title, ok, reason, ms }`. */
export async function* runCases(cases, door) {
  const info = await door.hooks({ modelInfo: true });
  const served = await purposeOf(new Context(door, info));
  for (const { id, title, doors, purpose = "text", run } of cases) {
    const wanted = purpose === "sees" ? "text" : purpose;
    if (!doors.includes(door.name) || wanted !== served) continue;
    const start = performance.now();
    let reason;
    try {
      for (const command of RESET) await door.hooks(command);
      const context = new Context(door, info);
      await context.idle(30_000);
      await limited(run(context), CASE_LIMIT_MS);
    } catch (error) {
      reason = error?.name === "CheckError" ? error.message : (error?.stack ?? String(error));
    }
    yield {
      id,
      title,
      ok: reason === undefined,
      reason,
      ms: Math.round(performance.now() - start),
    };
  }
  for (const command of RESET) await door.hooks(command);
}

async function limited(work, limit_ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${limit_ms / 1000} s`)), limit_ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
