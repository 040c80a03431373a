//! Counts the WebGPU calls of decoding: dispatches, submits and reads, and no call that creates an object per token.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const TOKENS = 64;

describe("a decode step", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  let harness;
  let page;
  let info;

  before(async () => {
    harness = await startHarness();
    page = await harness.open();
    info = await page.evaluate(async () => {
      window.engine = await inpage.createEngine({
        model: "embedded",
        workerUrl: "/fixtures/counting_worker.mjs",
      });
      const channel = new BroadcastChannel("webgpu-counts");
      window.counts = () =>
        new Promise((resolve) => {
          channel.onmessage = ({ data }) => resolve(data);
          channel.postMessage("count");
        });
      return engine.info();
    });
  });
  after(() => harness?.close());

  /** The counts of generating TOKENS tokens minus those of generating one: the cost of the steps between. */
  const countSteps = (fields) =>
    page.evaluate(
      async ([fields, tokens]) => {
        const generate = async (max_tokens) => {
          const before = await counts();
          const body = { model: "default", prompt: "One day", ignore_eos: true, seed: 1 };
          const answer = await engine.completions.create({ ...body, ...fields, max_tokens });
          if (answer.usage.completion_tokens !== max_tokens * (fields.n ?? 1)) {
            throw new Error(`${answer.usage.completion_tokens} tokens`);
          }
          const after = await counts();
          return Object.fromEntries(Object.entries(after).map(([k, n]) => [k, n - before[k]]));
        };
        // Graphs are recorded at their first use.
        await generate(tokens);
        const one = await generate(1);
        const start = performance.now();
        const all = await generate(tokens);
        const step_ms = (performance.now() - start) / tokens;
        const difference = Object.entries(all).map(([k, n]) => [k, n - one[k]]);
        return { ...Object.fromEntries(difference), step_ms };
      },
      [fields, TOKENS],
    );

  const steps = TOKENS - 1;

  test("takes few dispatches and creates no objects", async () => {
    const counted = await countSteps({ temperature: 0 });
    assert.ok(counted.dispatches <= (steps + 1) * (6 * info.layers + 6), JSON.stringify(counted));
    assert.ok(counted.dispatches >= steps * 5 * info.layers, JSON.stringify(counted));
    // At most 50 ms of steps run ahead of the reader: if a step takes longer than a quarter of that, results are
    // read more often.
    const isQuick = counted.step_ms <= 50 / 4;
    assert.ok(counted.submits <= (isQuick ? steps : 2 * steps), JSON.stringify(counted));
    assert.ok(counted.reads <= (isQuick ? steps / 4 : steps), JSON.stringify(counted));
    const { bindGroups, pipelines, pipelinesAhead, buffers } = counted;
    assert.deepEqual(
      { bindGroups, pipelines, pipelinesAhead, buffers },
      { bindGroups: 0, pipelines: 0, pipelinesAhead: 0, buffers: 0 },
    );
  });
});
