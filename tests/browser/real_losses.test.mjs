//! Lost devices, traps and missing adapters with the real engine and the embedded model: the text is the same as without them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

describe("the real engine", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;
  let page;

  before(async () => {
    harness = await startHarness();
    page = await harness.open();
    const failure = await page.evaluate(() =>
      caught(async () => {
        // The modules that the package's file is bundled of: their limits can be changed.
        window.inpage = await import("/dist/api.js");
        const { HEARTBEAT } = await import("/dist/page/heartbeat.js");
        HEARTBEAT.maxSilentBeats.requests = 10;
        window.engine = await inpage.createEngine({
          device: "webgpu",
          workerUrl: "/fixtures/losing_worker.mjs",
        });
        const channel = new BroadcastChannel("gpu-faults");
        window.fault = (name) => channel.postMessage(name);
        /** A streamed response, joined. `onChunk(count)` is called for every chunk. */
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
            onChunk(++count);
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
    );
    assert.equal(failure.message, undefined);
  });
  after(() => harness?.close());

  const body = {
    model: "default",
    prompt: "Once upon a time",
    max_tokens: 60,
    temperature: 1,
    seed: 11,
    n: 2,
    ignore_eos: true,
  };

  for (const fault of ["lose", "trap", "hang", "spin"]) {
    test(`streams the same text through "${fault}"`, async () => {
      const [expected, found, model] = await page.evaluate(
        async ([body, fault]) => {
          const expected = await streamed(body);
          const found = await streamed(body, (count) => count === 25 && window.fault(fault));
          return [expected, found, (await engine.info()).loadMs !== undefined];
        },
        [body, fault],
      );
      assert.deepEqual(found, expected);
      assert.equal(found.ids, 1, "all chunks have the same id");
      assert.equal(found.tokens, 120);
      assert.ok(model, "a new worker has loaded the model");
    });

    // Hangs take the time of their limit, and a whole answer is lost in the same way.
    if (fault === "hang" || fault === "spin") continue;
    test(`answers whole with the same text through "${fault}"`, async () => {
      const [expected, found] = await page.evaluate(
        async ([body, fault]) => {
          const expected = await whole(body);
          const running = whole(body);
          await until(async () => (await engine.info()).activeGenerations === 2, "it runs");
          window.fault(fault);
          return [expected, await running];
        },
        [body, fault],
      );
      assert.deepEqual(found, expected);
    });
  }

  test("continues a stream without a seed and with logprobs", async () => {
    const { ids, tokens, logprobs } = await page.evaluate(async (body) => {
      const { seed, n, ...unseeded } = body;
      let [tokens, count] = [0, 0];
      const ids = new Set();
      const logprobs = [];
      const stream = { ...unseeded, stream: true, logprobs: 1, return_tokens_as_token_ids: true };
      for await (const chunk of await engine.completions.create(stream)) {
        ids.add(chunk.id);
        for (const choice of chunk.choices) {
          tokens += choice.token_ids.length;
          logprobs.push(...choice.logprobs.text_offset);
        }
        if (++count === 20) window.fault("lose");
      }
      return { ids: ids.size, tokens, logprobs };
    }, body);
    assert.equal(ids, 1);
    assert.equal(tokens, 60);
    assert.deepEqual(
      logprobs,
      [...logprobs].sort((a, b) => a - b),
      "offsets continue where they were",
    );
  });

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
      const create = (load) => inpage.createEngine({ device: "webgpu", load });
      const { memory } = (await inpage.inspectModel("embedded")).model;
      const memoryBudgetBytes = memory.totalBytes - memory.kvBytes / 4;
      const refused = await caught(() => create({ memoryBudgetBytes }));
      const suggested = /load: \{ contextTokens: (\d+), kvPoolTokens: (\d+), kvFormat: "(\w+)" \}/;
      const [, contextTokens, kvPoolTokens, kvFormat] = suggested.exec(refused.message) ?? [];
      const engine = await create({
        memoryBudgetBytes,
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
