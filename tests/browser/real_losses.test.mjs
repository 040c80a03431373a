//! Lost devices, traps and missing adapters with the real engine on the GPU: the text is the same as without them. Files have a
//! time limit each, and loads on SwiftShader take long: losses on the CPU and a lack of memory are in files of their own.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { assertSame, body, openLosing, through } from "./losing_engine.mjs";

describe("the real engine", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;
  let page;
  /** The answer of the undisturbed engine on the GPU to `body`. */
  let expected;

  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    page = await openLosing(harness, "webgpu");
    expected = await page.evaluate(
      async (body) => ({ streamed: await streamed(body), whole: await whole(body) }),
      body,
    );
  });
  after(() => harness?.close());

  for (const fault of ["lose", "trap"]) {
    test(`streams and answers whole with the same text through "${fault}"`, async () => {
      assertSame(await through(fault, page, { both: true }), expected);
    });
  }

  // A hang takes the time of its limit, and a whole answer is lost in the same way.
  test('streams the same text through "hang"', async () => {
    assertSame(await through("hang", page), { streamed: expected.streamed });
  });

  test("without an adapter after a loss, it says when it retries, and recovers", async () => {
    const result = await page.evaluate(async (body) => {
      const cache = await caches.open("gpu-faults");
      await cache.put("/no-adapter", new Response());
      window.fault("lose");
      const post = () =>
        engine.fetch("/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      // A request that is lost with its engine would wait for the next engine.
      const isLost = async () => {
        const { shared: _, ...reported } = await engine.info();
        return Object.keys(reported).length === 0;
      };
      await until(isLost, "the loss is noticed", 10_000);
      const first = await post();
      const { code, message } = (await first.json()).error;
      const seconds = Number(first.headers.get("retry-after"));
      await cache.delete("/no-adapter");
      await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
      return { code, message, seconds, text: (await whole(body)).texts[0] };
    }, body);
    assert.equal(result.code, "model_not_loaded");
    assert.match(
      result.message,
      /could not be loaded \(no usable WebGPU device.*\); the next attempt is in \d s/,
    );
    assert.ok(result.seconds >= 1 && result.seconds <= 2);
    assert.ok(result.text.length > 0);
  });
});
