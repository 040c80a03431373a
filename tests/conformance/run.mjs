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

/** One result per case of `cases` that supports the door and its kind of model: `{ id, title, ok, reason, ms }`. */
export async function* runCases(cases, door) {
  const info = await door.hooks({ modelInfo: true });
  const modelEmbeds = info.embeddingWidth !== undefined;
  for (const { id, title, doors, embeds = false, run } of cases) {
    if (!doors.includes(door.name) || embeds !== modelEmbeds) continue;
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
