//! Measures one model on one device with the package. Which devices, and what is shown, is the concern of `main.js`.

/** @import { Engine, ModelOption } from "../dist/index.js" */

import { createEngine } from "../dist/index.js";
import { cpuBandwidth, gpuBandwidth } from "./bandwidth.js";

export const PROMPT_TOKENS = 128;
export const DECODED_TOKENS = 64;
const ROUNDS = 3;

/**
 * The times of a runtime. `share` is what decoding reads per second (the file's bytes for each token) of what the device copies per second.
 *
 * @typedef {{
 *   runtime: string, device?: string | undefined, adapter?: string | undefined, threads?: number | undefined, variant?: string | undefined,
 *   loadMs?: number, prefill?: number, decode?: number, bandwidth?: number | undefined, share?: number | undefined, error?: string,
 * }} Result
 */

/** @param {number[]} values */
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1] ?? Number.NaN;

/**
 * Rates of rounds, in tokens per second: the first token ends the prefill, the others are decoded.
 *
 * @param {() => Promise<{ promptTokens: number, startMs: number, stampsMs: number[] }>} once
 * @param {AbortSignal} signal ends the rounds
 */
export async function rates(once, signal) {
  const prefill = [];
  const decode = [];
  for (let round = -1; round < ROUNDS; round++) {
    signal.throwIfAborted();
    const { promptTokens, startMs, stampsMs } = await once();
    // A round that was stopped says nothing.
    signal.throwIfAborted();
    const [first, last] = [stampsMs[0], stampsMs.at(-1)];
    if (first === undefined || last === undefined || stampsMs.length < 2)
      throw new Error("the runtime wrote fewer than two tokens");
    // The first round compiles.
    if (round < 0) continue;
    prefill.push((promptTokens / (first - startMs)) * 1000);
    decode.push(((stampsMs.length - 1) / (last - first)) * 1000);
  }
  return { prefill: median(prefill), decode: median(decode) };
}

/**
 * @param {ModelOption} model
 * @param {"webgpu" | "cpu"} device
 * @param {AbortSignal} signal
 * @param {(text: string) => void} say
 * @returns {Promise<Result>}
 */
export async function measure(model, device, signal, say) {
  const runtime = `inpage, ${device === "cpu" ? "CPU" : "GPU"}`;
  // The page compares devices, so a software adapter is not taken for a GPU.
  if (device === "webgpu" && (await isWithoutGpu()))
    return { runtime, device, error: "this browser offers no GPU to pages" };
  const startMs = performance.now();
  const engine = await createEngine({
    ...{ model, device, signal, shared: false },
    onProgress: ({ phase, loadedBytes, totalBytes }) => {
      const part = totalBytes ? ` ${Math.round((loadedBytes / totalBytes) * 100)} %` : "";
      say(`${runtime}: ${phase}${part}`);
    },
  });
  try {
    const loadMs = performance.now() - startMs;
    const info = await engine.info();
    say(`${runtime}: measuring`);
    const found = await rates(() => complete(engine, info.vocabSize ?? 256, signal), signal);
    const bandwidth = await (device === "cpu" ? cpuBandwidth() : gpuBandwidth());
    const share = bandwidth && ((info.fileBytes ?? 0) * found.decode) / bandwidth;
    const { adapter, threads, variant } = info;
    return { runtime, device, adapter, threads, variant, loadMs, ...found, bandwidth, share };
  } finally {
    await engine.dispose();
  }
}

async function isWithoutGpu() {
  const adapter = await navigator.gpu?.requestAdapter();
  return !adapter || adapter.info?.isFallbackAdapter === true;
}

/**
 * One completion of a prompt that no cache has.
 *
 * @param {Engine} engine
 * @param {number} vocabSize
 * @param {AbortSignal} signal
 */
async function complete(engine, vocabSize, signal) {
  const prompt = Array.from({ length: PROMPT_TOKENS }, () => Math.floor(Math.random() * vocabSize));
  const stampsMs = [];
  const startMs = performance.now();
  const stream = await engine.completions.create(
    {
      ...{ model: "default", prompt, temperature: 0, max_tokens: DECODED_TOKENS },
      ...{ ignore_eos: true, stream: true },
    },
    { signal },
  );
  for await (const { choices } of stream) if (choices.length > 0) stampsMs.push(performance.now());
  return { promptTokens: PROMPT_TOKENS, startMs, stampsMs };
}
