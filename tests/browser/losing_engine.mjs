//! A page whose engine fails on command, for tests of losses with the real engine and the embedded model.

import assert from "node:assert/strict";

/** A page whose engine computes on this device, and whose worker fails on command. */
export async function openLosing(harness, device) {
  const opened = await harness.open();
  const failure = await opened.evaluate(
    (device) =>
      caught(async () => {
        // The modules that the package's file is bundled of: their limits can be changed.
        window.inpage = await import("/dist/exports.js");
        window.workers = 0;
        const channel = new BroadcastChannel("gpu-faults");
        channel.onmessage = ({ data }) => {
          if (data === "started") window.workers += 1;
          if (data === "spinning") window.spins();
        };
        const { HEARTBEAT } = await import("/dist/thread/heartbeat.js");
        // 10 s on the software adapter, whose steps are long on a busy machine, and 5 s on the CPU.
        HEARTBEAT.beatMs = device === "webgpu" ? 1000 : 500;
        HEARTBEAT.maxSilentBeats = { idle: 10, requests: 10, load: 300 };
        window.engine = await inpage.createEngine({
          device,
          workerUrl: "/fixtures/losing_worker.mjs",
        });
        /** Causes this fault. Waits until the worker spins, which is in the middle of an answer of more than 256 unread tokens. */
        window.fault = (name) => {
          const { promise, resolve } = Promise.withResolvers();
          window.spins = resolve;
          channel.postMessage(name);
          if (name === "spin") return promise;
        };
        /** A streamed response, joined. `onChunk(count)` is called for every chunk, and waited for. */
        window.streamed = async (body, onChunk = () => {}) => {
          const texts = [];
          const reasons = [];
          const ids = new Set();
          let [count, usage] = [0, undefined];
          const stream = { ...body, stream: true, stream_options: { include_usage: true } };
          for await (const chunk of await engine.completions.create(stream)) {
            ids.add(chunk.id);
            usage = chunk.usage ?? usage;
            for (const { index, text, finish_reason } of chunk.choices) {
              texts[index] = (texts[index] ?? "") + text;
              reasons[index] ??= finish_reason;
            }
            await onChunk(++count);
          }
          return { texts, reasons, ids: ids.size, tokens: usage.completion_tokens };
        };
        window.whole = async (body) => {
          const { choices, usage } = await engine.completions.create(body);
          return {
            texts: choices.map(({ text }) => text),
            reasons: choices.map(({ finish_reason }) => finish_reason),
            ids: 1,
            tokens: usage.completion_tokens,
          };
        };
      }),
    device,
  );
  assert.equal(failure.message, undefined);
  return opened;
}

/** A request of 120 tokens, whose answer is the same each time. */
export const body = {
  model: "default",
  prompt: "Once upon a time",
  max_tokens: 60,
  temperature: 1,
  seed: 11,
  n: 2,
  ignore_eos: true,
};

/**
 * Streams `body` while the worker fails, and with `both` asks for a whole answer at the same time; also gives how many workers were
 * started meanwhile.
 */
export const through = (fault, page, { body: asked = body, both = false } = {}) =>
  page.evaluate(
    async ([body, fault, both]) => {
      const before = window.workers;
      const running = both && whole(body);
      const found = {
        streamed: await streamed(body, (count) => count === 25 && window.fault(fault)),
        ...(both && { whole: await running }),
      };
      return { found, workers: window.workers - before };
    },
    [asked, fault, both],
  );

/** Checks what `through` has found. */
export const assertSame = ({ found, workers }, expected, tokens = 120) => {
  assert.deepEqual(found, expected);
  assert.equal(found.streamed.ids, 1, "all chunks have the same id");
  assert.equal(found.streamed.tokens, tokens);
  assert.ok(workers > 0, "a new worker has loaded the model");
};
