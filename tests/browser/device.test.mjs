//! `createEngine({ device })`: where the real engine computes, why, and that it stays responsive on the CPU.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";
const GREEDY = { model: "tales", prompt: "Once upon a time", temperature: 0, max_tokens: 24 };

describe("the device of an engine", { skip }, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ wholeBrowser: true });
    page = await harness.open();
  });
  after(() => harness?.close());

  /** The report of an engine with these options, and its greedy text. */
  const run = (options) =>
    page.evaluate(
      async ([options, body]) => {
        const engine = await inpage.createEngine(options);
        const { choices } = await engine.completions.create(body);
        const info = await engine.info();
        await engine.dispose();
        return { info, text: choices[0].text };
      },
      [options, GREEDY],
    );

  test("auto takes the CPU where the only adapter is software, and says why", async () => {
    const { info, text } = await run({});
    // On a machine with a GPU, auto takes that.
    if (info.device === "webgpu") {
      assert.equal(info.softwareAdapter, false);
      assert.equal(info.deviceReason, null);
      return;
    }
    assert.equal(info.device, "cpu");
    assert.match(info.deviceReason, /is a software adapter|no WebGPU/);
    assert.match(info.adapter, /^CPU \((relaxed-simd|simd128)\)$/);
    assert.match(info.variant, /^CPU, /);
    assert.equal(info.threads, 1);
    assert.match(text, /[a-z]{3}/);
  });

  test("the CPU and WebGPU write the same beginning", async () => {
    const cpu = await run({ device: "cpu" });
    assert.deepEqual([cpu.info.device, cpu.info.deviceReason], ["cpu", null]);
    const gpu = await run({ device: "webgpu" });
    assert.deepEqual([gpu.info.device, gpu.info.deviceReason], ["webgpu", null]);
    // Products of bytes round: near ties may fall either way later.
    assert.equal(cpu.text.slice(0, 24), gpu.text.slice(0, 24));
  });

  test("without WebGPU in workers, the CPU computes and the reason says so", async () => {
    const { info, text } = await run({ workerUrl: "/fixtures/no_gpu_worker.mjs" });
    assert.equal(info.device, "cpu");
    assert.match(info.deviceReason, /WebGPU in pages, but not in workers/);
    assert.match(text, /[a-z]{3}/);
  });

  test("a GPU whose kernels compute wrongly is replaced by the CPU in the same load", async () => {
    const workerUrl = "/fixtures/wrong_gpu_worker.mjs";
    const { info, text } = await run({ workerUrl });
    assert.equal(info.device, "cpu");
    assert.match(info.deviceReason, /no kernel variant computes correctly/);
    assert.equal(text, (await run({ device: "cpu" })).text);
  });

  test("relaxed SIMD is used where the browser has it", async () => {
    const { info } = await run({ device: "cpu" });
    assert.equal(info.adapter, "CPU (relaxed-simd)");
  });

  test("a device that does not exist is refused by name", async () => {
    const { message } = await page.evaluate(() =>
      caught(() => inpage.createEngine({ device: "tpu" })),
    );
    assert.match(message, /invalid device.*tpu/);
  });

  test("requests and aborts are handled while the CPU computes", async () => {
    const { early, ended } = await page.evaluate(async (body) => {
      const engine = await inpage.createEngine({ device: "cpu" });
      const abort = new AbortController();
      const long = { ...body, max_tokens: 400, stream: true, ignore_eos: true };
      let tokens = 0;
      try {
        for await (const chunk of await engine.completions.create(long, { signal: abort.signal })) {
          if (chunk.choices.length > 0) tokens += 1;
          if (tokens === 2) abort.abort();
        }
      } catch (error) {
        if (error.name !== "AbortError") throw error;
      }
      const idle = async () => (await engine.info()).activeGenerations === 0;
      await until(idle, "the aborted generation ended", 2000);
      // Another request overtakes a long one that runs.
      const running = engine.completions.create({ ...long, stream: false });
      let longEnded = false;
      void running.then(() => {
        longEnded = true;
      });
      await engine.completions.create({ ...body, max_tokens: 1 });
      const early = !longEnded;
      await running;
      await engine.dispose();
      return { early, ended: tokens < 300 };
    }, GREEDY);
    assert.deepEqual({ early, ended }, { early: true, ended: true });
  });
});
