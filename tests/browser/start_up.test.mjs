//! What a load waits for: pipelines are asked for while the model is still on its way, and the first token
//! asks for none. Counted and not timed.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { startModelServer } from "./model_server.mjs";

/** The kernels that measure what a barrier costs: which others are worth compiling depends on it. */
const COMPILED_ON_DEMAND = 2;
const LOAD_LIMIT_MS = 120_000;

describe("a load", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  const state = { bytes: readFileSync(join(root, "www/models/tales.gguf")), etag: '"one"' };
  let harness;
  let server;

  before(async () => {
    harness = await startHarness();
    server = await startModelServer(state);
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  /** A page with `counts()`, the engine being loaded as `engine`. */
  const openLoading = async () => {
    const page = await harness.open();
    await page.evaluate(async (url) => {
      const channel = new BroadcastChannel("webgpu-counts");
      window.counts = () =>
        new Promise((resolve) => {
          // The worker may not listen yet: asked again until it answers.
          const ask = () => channel.postMessage("count");
          const asking = setInterval(ask, 200);
          channel.onmessage = ({ data }) => {
            clearInterval(asking);
            resolve(data);
          };
          ask();
        });
      window.engine = await inpage.createEngine({
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

  test("compiles all that the first token needs before the last byte has come", async () => {
    const reference = await countsWhenReady(await openLoading());
    const { pipelines, pipelinesAhead } = reference.loaded;
    assert.ok(pipelines <= COMPILED_ON_DEMAND, JSON.stringify(reference));
    assert.ok(pipelinesAhead >= 20, JSON.stringify(reference));
    for (const key of ["pipelines", "pipelinesAhead"]) {
      assert.equal(reference.answered[key], reference.loaded[key], JSON.stringify(reference));
    }

    const lengthBytes = state.bytes.length;
    // The server sends pieces of 256 KiB: the last one is kept back.
    Object.assign(state, { sentBytes: 0, holdAfter: lengthBytes - (256 << 10) });
    const page = await openLoading();
    await page.evaluate(
      ([count, limit_ms]) =>
        until(
          async () => (await counts()).pipelinesAhead === count,
          "the pipelines are asked for",
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
