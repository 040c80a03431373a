//! Counts WebGPU calls. Loading: pipelines are requested while the model is still downloading, and the first token
//! requests none. Decoding: dispatches, submits and reads, and no call that creates an object per token.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { startModelServer } from "./model_server.mjs";

/** The kernels that measure the cost of a barrier. The choice of the other kernels depends on it. */
const COMPILED_ON_DEMAND = 2;
const LOAD_LIMIT_MS = 120_000;
const TOKENS = 64;

describe("WebGPU calls", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  const state = { bytes: readFileSync(join(root, "www/models/tales.gguf")), etag: '"one"' };
  let harness;
  let server;
  /** A page whose model is loaded, and the counts of that load. */
  let reference;

  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    server = await startModelServer(state);
    const page = await openLoading();
    reference = { page, ...(await countsWhenReady(page)) };
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  /** A page with `counts()` and an `engine` that is loading. */
  const openLoading = async () => {
    const page = await harness.open();
    await page.evaluate(async (url) => {
      const channel = new BroadcastChannel("webgpu-counts");
      window.counts = () =>
        new Promise((resolve) => {
          // The worker may not listen yet, so ask until it answers. An answer to an earlier question is outdated.
          const question = crypto.randomUUID();
          const ask = () => channel.postMessage({ question });
          const asking = setInterval(ask, 200);
          channel.onmessage = ({ data }) => {
            if (data.question !== question) return;
            clearInterval(asking);
            resolve(data.counts);
          };
          ask();
        });
      window.engine = await inpage.createEngine({
        device: "webgpu",
        model: { url, id: "tales" },
        workerUrl: "/fixtures/counting_worker.mjs",
        background: true,
      });
    }, server.url);
    return page;
  };
  const countsWhenReady = (page) =>
    page.evaluate(async () => {
      await engine.ready;
      const loaded = await counts();
      const body = { model: "tales", prompt: "One day", max_tokens: 2, temperature: 0 };
      await engine.completions.create(body);
      return { loaded, answered: await counts(), info: await engine.info() };
    });

  /** The counts of generating TOKENS tokens minus those of generating one, which is the cost of the steps between. */
  const countSteps = (fields) =>
    reference.page.evaluate(
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

  test("a decode step takes few dispatches and creates no objects", async () => {
    const { info } = reference;
    const steps = TOKENS - 1;
    const counted = await countSteps({ temperature: 0 });
    assert.ok(counted.dispatches <= (steps + 1) * (6 * info.layers + 6), JSON.stringify(counted));
    assert.ok(counted.dispatches >= steps * 5 * info.layers, JSON.stringify(counted));
    // At most 50 ms of steps run ahead of the reader. So the slower the steps are, the more often results are read; times vary by a
    // factor of two on a busy machine.
    const readsPerStep = Math.min(Math.max((2 * counted.step_ms) / 50, 1 / 4), 1);
    assert.ok(counted.reads <= Math.ceil(steps * readsPerStep), JSON.stringify(counted));
    // A step is a pass. Up to two more than the answer needs may have begun when it ends.
    assert.ok(counted.passes <= steps + 2, JSON.stringify(counted));
    // A read is a submit of its own; quick steps share one.
    const mostSubmits = readsPerStep === 1 / 4 ? steps : counted.passes + counted.reads;
    assert.ok(counted.submits <= mostSubmits, JSON.stringify(counted));
    const { bindGroups, pipelines, pipelinesAhead, buffers } = counted;
    assert.deepEqual(
      { bindGroups, pipelines, pipelinesAhead, buffers },
      { bindGroups: 0, pipelines: 0, pipelinesAhead: 0, buffers: 0 },
    );
  });

  test("a load compiles all kernels of the first token before the last byte arrives", async () => {
    const { loaded: expected, answered } = reference;
    const { pipelines, pipelinesAhead } = expected;
    const message = JSON.stringify({ expected, answered });
    assert.ok(pipelines <= COMPILED_ON_DEMAND, message);
    assert.ok(pipelinesAhead >= 20, message);
    for (const key of ["pipelines", "pipelinesAhead"]) {
      assert.equal(answered[key], expected[key], message);
    }

    const lengthBytes = state.bytes.length;
    // The server sends pieces of 256 KiB and holds back the last one.
    Object.assign(state, { sentBytes: 0, holdAfter: lengthBytes - (256 << 10) });
    const page = await openLoading();
    await page.evaluate(
      ([count, limit_ms]) =>
        until(
          async () => (await counts()).pipelinesAhead === count,
          "the pipelines are requested",
          limit_ms,
        ),
      [pipelinesAhead, LOAD_LIMIT_MS],
    );
    assert.ok(state.sentBytes < lengthBytes, "the download did not wait");
    delete state.holdAfter;
    const { loaded, info } = await countsWhenReady(page);
    assert.deepEqual(
      { pipelines: loaded.pipelines, pipelinesAhead: loaded.pipelinesAhead },
      { pipelines, pipelinesAhead },
    );
    const parts = ["worker", "header", "device", "kernels", "weights", "recording"];
    assert.deepEqual(Object.keys(info.loadMs), parts);
  });
});
