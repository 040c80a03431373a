//! A lack of memory with the real engine: the error tells the sizes, and the next engine works.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

describe("memory", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    page = await harness.open();
  });
  after(() => harness?.close());

  test("tells the sizes when the GPU is out of memory, and works when there is memory", async () => {
    const { refused, again } = await page.evaluate(async () => {
      const cache = await caches.open("gpu-faults");
      await cache.put("/full", new Response());
      const create = () =>
        inpage.createEngine({
          device: "webgpu",
          workerUrl: "/fixtures/losing_worker.mjs",
          shared: false,
        });
      const refused = await caught(create);
      await cache.delete("/full");
      const engine = await create();
      const again = (await engine.info()).layers;
      await engine.dispose();
      return { refused, again };
    });
    assert.equal(refused.code, "out_of_memory");
    assert.match(
      refused.message,
      /no memory for another [\d.]+ MiB, while this engine uses [01]\.\d MiB/,
    );
    assert.match(refused.message, /load\.contextTokens/);
    assert.ok(again > 0);
  });

  test("refuses a model that exceeds the memory budget before its weights are read", async () => {
    const { refused, fits } = await page.evaluate(async () => {
      const create = (load) =>
        inpage.createEngine({ device: "cpu", threads: 1, memoryBudgetBytes, load });
      const { memory } = (await inpage.inspectModel("embedded")).model;
      const memoryBudgetBytes = memory.totalBytes - memory.kvBytes / 4;
      const refused = await caught(() => create({}));
      const suggested = /load: \{ contextTokens: (\d+), kvPoolTokens: (\d+), kvFormat: "(\w+)" \}/;
      const [, contextTokens, kvPoolTokens, kvFormat] = suggested.exec(refused.message) ?? [];
      const engine = await create({
        contextTokens: Number(contextTokens),
        kvPoolTokens: Number(kvPoolTokens),
        kvFormat,
      });
      const fits = (await engine.info()).contextTokens === Number(contextTokens);
      await engine.dispose();
      return { refused, fits };
    });
    assert.equal(refused.code, "out_of_memory");
    assert.match(refused.message, /needs .* \(weights .*, KV cache of .*, steps .*\)/);
    assert.ok(fits);
  });
});
