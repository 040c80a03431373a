//! Lost devices, traps and missing adapters with the real engine and the embedded model: the text is the same as without them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

describe("the real engine", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;
  let page;
  /** The answer of the undisturbed engine on the GPU to `body`. */
  let expected;

  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    page = await openLosing("webgpu");
    expected = await page.evaluate(
      async (body) => ({ streamed: await streamed(body), whole: await whole(body) }),
      body,
    );
  });
  after(() => harness?.close());

  /** A page whose engine computes on this device, and whose worker fails on command. */
  async function openLosing(device) {
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

  const body = {
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
  const through = (fault, page, { body: asked = body, both = false } = {}) =>
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

  const assertSame = ({ found, workers }, expected, tokens = 120) => {
    assert.deepEqual(found, expected);
    assert.equal(found.streamed.ids, 1, "all chunks have the same id");
    assert.equal(found.streamed.tokens, tokens);
    assert.ok(workers > 0, "a new worker has loaded the model");
  };

  for (const fault of ["lose", "trap"]) {
    test(`streams and answers whole with the same text through "${fault}"`, async () => {
      assertSame(await through(fault, page, { both: true }), expected);
    });
  }

  // A hang takes the time of its limit, and a whole answer is lost in the same way.
  test('streams the same text through "hang"', async () => {
    assertSame(await through("hang", page), { streamed: expected.streamed });
  });

  describe("on the CPU", () => {
    // The CPU computes 60 tokens faster than a message arrives. The engine pauses after 256 unread ones.
    const maxTokens = 400;
    let page;
    before(async () => {
      page = await openLosing("cpu");
    });
    after(() => page?.context().close());

    test('streams the same text through "spin"', async () => {
      const long = { ...body, max_tokens: maxTokens / 2 };
      const undisturbed = await page.evaluate((body) => streamed(body), long);
      assertSame(await through("spin", page, { body: long }), { streamed: undisturbed }, maxTokens);
    });

    test("continues a stream without a seed and with logprobs", async () => {
      const { seed, n, ...unseeded } = body;
      const fields = {
        ...unseeded,
        max_tokens: maxTokens,
        logprobs: 1,
        return_tokens_as_token_ids: true,
      };
      const { ids, tokens, logprobs, isNew } = await page.evaluate(async (fields) => {
        let [tokens, count] = [0, 0];
        const ids = new Set();
        const logprobs = [];
        const { workers } = window;
        for await (const chunk of await engine.completions.create({ ...fields, stream: true })) {
          ids.add(chunk.id);
          for (const choice of chunk.choices) {
            tokens += choice.token_ids.length;
            logprobs.push(...choice.logprobs.text_offset);
          }
          if (++count === 20) await window.fault("spin");
        }
        return { ids: ids.size, tokens, logprobs, isNew: window.workers > workers };
      }, fields);
      assert.equal(ids, 1);
      assert.equal(tokens, maxTokens);
      assert.ok(isNew, "another worker has continued it");
      assert.deepEqual(
        logprobs,
        [...logprobs].sort((a, b) => a - b),
        "offsets continue where they were",
      );
    });
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
