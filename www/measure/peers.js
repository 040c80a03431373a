//! Measures other runtimes for browsers, which are loaded from a CDN only when the visitor asks for them.

/** @import { Result } from "./measure.js" */

import { DECODED_TOKENS, PROMPT_TOKENS, rates } from "./measure.js";

const CDN = "https://cdn.jsdelivr.net/npm";
const WLLAMA = `${CDN}/@wllama/wllama@3.8.1/esm`;
const TRANSFORMERS = `${CDN}/@huggingface/transformers@4.3.1`;
const TRANSFORMERS_MODEL = "HuggingFaceTB/SmolLM2-135M-Instruct";

/**
 * wllama on the CPU with a GGUF file.
 *
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<Result>}
 */
export async function measureWllama(url, signal) {
  const { Wllama } = await import(`${WLLAMA}/index.js`);
  const startMs = performance.now();
  const runtime = new Wllama({ default: `${WLLAMA}/wasm/wllama.wasm` });
  try {
    const file = await (await fetch(url, { signal })).blob();
    const n_ctx = 2 * (PROMPT_TOKENS + DECODED_TOKENS);
    await runtime.loadModel([file], { n_ctx, n_gpu_layers: 0 });
    const loadMs = performance.now() - startMs;
    // A word of the prompt is about a token. The runtime says how many there were.
    const prompt = Array(PROMPT_TOKENS).fill("the").join(" ");
    const found = await rates(async () => {
      /** @type {number[]} */
      const stampsMs = [];
      let promptTokens = PROMPT_TOKENS;
      const startMs = performance.now();
      await runtime.createCompletion({
        ...{ prompt, max_tokens: DECODED_TOKENS, temperature: 0, ignore_eos: true },
        ...{ cache_prompt: false, stream: true, abortSignal: signal },
        /** @param {{ choices?: { finish_reason: string | null }[], timings?: { prompt_n: number } }} chunk */
        onData: ({ choices, timings }) => {
          promptTokens = timings?.prompt_n ?? promptTokens;
          if (choices?.[0]?.finish_reason === null) stampsMs.push(performance.now());
        },
      });
      return { promptTokens, startMs, stampsMs };
    }, signal);
    return { runtime: "wllama, CPU", device: "cpu", loadMs, ...found };
  } finally {
    await runtime.exit?.();
  }
}

/**
 * transformers.js on the GPU with its own file of SmolLM2-135M, 4 bits.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<Result>}
 */
export async function measureTransformers(signal) {
  const { AutoModelForCausalLM, InterruptableStoppingCriteria, Tensor, env } = await import(
    TRANSFORMERS
  );
  // Loading takes no signal.
  /** @param {string | URL} input @param {RequestInit} [init] */
  env.fetch = (input, init) => fetch(input, { ...init, signal });
  const startMs = performance.now();
  const options = { dtype: "q4", device: "webgpu" };
  const model = await AutoModelForCausalLM.from_pretrained(TRANSFORMERS_MODEL, options);
  const loadMs = performance.now() - startMs;
  const stopping = new InterruptableStoppingCriteria();
  signal.addEventListener("abort", () => stopping.interrupt());
  try {
    const found = await rates(async () => {
      const ids = Array.from({ length: PROMPT_TOKENS }, () =>
        BigInt(100 + Math.floor(Math.random() * 900)),
      );
      const shape = [1, PROMPT_TOKENS];
      /** @type {number[]} */
      const stampsMs = [];
      const startMs = performance.now();
      await model.generate({
        input_ids: new Tensor("int64", BigInt64Array.from(ids), shape),
        attention_mask: new Tensor("int64", new BigInt64Array(PROMPT_TOKENS).fill(1n), shape),
        ...{ max_new_tokens: DECODED_TOKENS, min_new_tokens: DECODED_TOKENS, do_sample: false },
        streamer: { put: () => stampsMs.push(performance.now()), end() {} },
        stopping_criteria: stopping,
      });
      // The first call of the streamer has the prompt.
      return { promptTokens: PROMPT_TOKENS, startMs, stampsMs: stampsMs.slice(1) };
    }, signal);
    return { runtime: "transformers.js, GPU", device: "webgpu", loadMs, ...found };
  } finally {
    await model.dispose?.();
  }
}
