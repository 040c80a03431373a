//! LoRA adapters in the page: set at load, removed and added on the GPU; on the CPU, which loads sooner, also added up, replaced while
//! requests are in flight, refused, and kept by a new worker. `tests/parity` checks their results.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { loraFile } from "./lora_file.mjs";
import { startModelServer } from "./model_server.mjs";

const NAMES = {
  "blk.0.attn_q.weight": [256, 256],
  "blk.1.attn_v.weight": [128, 256],
  "blk.1.ffn_up.weight": [512, 256],
  "blk.2.ffn_down.weight": [256, 512],
};

describe("LoRA adapters", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  const state = {
    etag: '"first"',
    exposeHeaders: true,
    files: {
      "one.gguf": loraFile({ names: NAMES }),
      "two.gguf": loraFile({ names: NAMES, seed: 7 }),
      "foreign.gguf": loraFile({ names: NAMES, architecture: "qwen2" }),
      "misshapen.gguf": loraFile({ names: { "blk.0.attn_q.weight": [128, 256] } }),
      "unknown.gguf": loraFile({ names: { "blk.7.attn_q.weight": [256, 256] } }),
    },
  };
  let harness;
  let server;
  let page;
  let at;

  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    server = await startModelServer(state);
    at = (name) => new URL(name, server.url).href;
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  /** From here on, the tests' engine computes on this device. It is loaded with an adapter. */
  async function openOn(device) {
    await page?.context().close();
    page = await harness.open();
    await page.evaluate(
      async ([device, url]) => {
        window.engine = await inpage.createEngine({ device, lora: [{ url, scale: 0.5 }] });
        window.ask = async (change = {}) => {
          const { choices, system_fingerprint } = await engine.completions.create({
            ...{ model: "tales", prompt: "Once upon a time", max_tokens: 8, temperature: 0 },
            ...{ logprobs: 1, ...change },
          });
          const [{ text, logprobs }] = choices;
          return { text, logprobs: logprobs?.token_logprobs, fingerprint: system_fingerprint };
        };
      },
      [device, at("one.gguf")],
    );
  }

  const ask = (change) => page.evaluate((change) => ask(change), change);
  const setLora = (...lora) => page.evaluate((lora) => caught(() => engine.setLora(lora)), lora);
  const info = async () => (await page.evaluate(() => engine.info())).lora;
  const difference = (a, b) =>
    Math.max(...a.logprobs.map((logprob, i) => Math.abs(logprob - b.logprobs[i])));

  test("are in use from the start, and are removed and added without loading the model again", async () => {
    await openOn("webgpu");
    assert.deepEqual(await info(), [{ name: "one", scale: 0.5 }]);
    const dispatches = () => page.evaluate(async () => (await engine.info()).decodeDispatches);
    const adaptedDispatches = await dispatches();
    const adapted = await ask();
    await setLora();
    assert.deepEqual(await info(), []);
    // Two dispatches for each of the four products that it adapts.
    assert.equal(adaptedDispatches - (await dispatches()), 8);
    const plain = await ask();
    assert.notEqual(adapted.fingerprint, plain.fingerprint);
    assert.ok(adapted.text !== plain.text || difference(adapted, plain) > 0.1);
    await setLora({ url: at("one.gguf"), scale: 0.5 });
    assert.deepEqual(await ask(), adapted);
  });

  test("leave nothing behind, and add up", async () => {
    await openOn("cpu");
    const adapted = await ask();
    await setLora();
    const plain = await ask();
    // The base model of an engine that never had an adapter.
    const untouched = await page.evaluate(async () => {
      const other = await inpage.createEngine({ device: "cpu" });
      const { choices, system_fingerprint } = await other.completions.create({
        ...{ model: "tales", prompt: "Once upon a time", max_tokens: 8, temperature: 0 },
        logprobs: 1,
      });
      await other.dispose();
      return { ...choices[0], system_fingerprint };
    });
    assert.equal(untouched.text, plain.text);
    assert.deepEqual(untouched.logprobs.token_logprobs, plain.logprobs);
    assert.equal(untouched.system_fingerprint, plain.fingerprint);

    // Two adapters at a quarter of the scale equal one at half the scale.
    const quarter = { url: at("one.gguf"), scale: 0.25 };
    await setLora(quarter, quarter);
    const sum = await ask();
    assert.equal(sum.text, adapted.text);
    assert.ok(difference(sum, adapted) < 0.01, `${difference(sum, adapted)}`);
    await setLora({ url: at("one.gguf"), scale: 0 });
    const none = await ask();
    assert.equal(none.text, plain.text);
    assert.ok(difference(none, plain) < 1e-4);
  });

  test("wait for in-flight requests, and later requests wait for them", async () => {
    await setLora();
    const long = { max_tokens: 200, ignore_eos: true };
    const alone = await ask(long);
    await setLora({ url: at("two.gguf") });
    const adapted = await ask(long);
    await setLora();
    const { wasActive, running, queued } = await page.evaluate(
      async ([url, long]) => {
        const running = ask(long);
        await until(async () => (await engine.info()).activeGenerations > 0, "it runs");
        const set = engine.setLora([{ url }]);
        const wasActive = (await engine.info()).activeGenerations;
        await set;
        return { wasActive, running: await running, queued: await ask(long) };
      },
      [at("two.gguf"), long],
    );
    assert.equal(wasActive, 1, "it ran while the adapters were set");
    assert.deepEqual(running.text, alone.text);
    assert.deepEqual(queued, adapted);
    assert.notEqual(alone.text, adapted.text);
  });

  test("that do not fit are refused by name, and the old ones stay in use", async () => {
    await setLora({ url: at("two.gguf"), scale: 0.75 });
    const before = await ask();
    const two = [{ name: "two", scale: 0.75 }];
    const cases = [
      [[{ url: at("foreign.gguf") }], "unsupported_model", /foreign.*qwen2/],
      [[{ url: at("misshapen.gguf") }], "unsupported_model", /misshapen.*attn_q/],
      [[{ url: at("unknown.gguf") }], /model/, /unknown.*blk\.7\.attn_q/],
      [[{ url: at("two.gguf"), scale: 1e300 }], "unsupported_model", /two.*inf/],
      [[{ url: at("two.gguf") }, { url: at("gone.gguf") }], "adapter_not_readable", /gone.*404/],
      [[{ url: "/models/tales.gguf" }], /model/, /tales/],
    ];
    for (const [lora, code, message] of cases) {
      const error = await setLora(...lora);
      assert.equal(error.className, "InpageError", JSON.stringify(error));
      assert.match(error.code, code instanceof RegExp ? code : new RegExp(`^${code}$`));
      assert.match(error.message, message);
      assert.deepEqual(await info(), two);
    }
    for (const lora of [[{}], [{ url: at("two.gguf"), scale: Number.NaN }]]) {
      assert.match((await setLora(...lora)).message, /^lora\[0\]/);
    }
    assert.deepEqual(await ask(), before);
  });

  test("are kept by a new worker", async () => {
    await setLora({ url: at("two.gguf"), scale: 0.75 });
    const before = await ask();
    await page.evaluate(() => engine.reload());
    assert.deepEqual(await info(), [{ name: "two", scale: 0.75 }]);
    assert.deepEqual(await ask(), before);
  });

  test("that do not fit make the load fail", async () => {
    const error = await page.evaluate(
      (url) => caught(() => inpage.createEngine({ lora: [{ url }] })),
      at("foreign.gguf"),
    );
    assert.equal(error.code, "unsupported_model");
    assert.match(error.message, /foreign/);
  });
});
