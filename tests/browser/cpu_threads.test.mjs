//! Threads of the CPU device: how products are divided, the declaration of shared memory, and the real engine in a
//! cross-origin isolated page, which has threads, and in one that has none.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

const built = (file) => pathToFileURL(join(root, "www/dist/worker", file)).href;
const isBuilt = existsSync(join(root, "www/dist/worker/cpu_division.js"));

describe("a divided product", { skip: !isBuilt && "skipped: the package is not built" }, () => {
  // The parts of a product are counted, each in an element of its own, and products of different numbers of parts follow
  // one another at once or after threads have gone to sleep. `address` tells the products apart.
  const COUNTED = `
    export const countIn = (counts) => (address, part, parts) => {
      Atomics.add(counts, 0, parts === 2 + (address % 9) && part < parts ? 0 : 1);
      Atomics.add(counts, 1 + part, 1);
      return address === 13 && part === 1 ? 0 : 1;
    };`;
  const counted = `data:text/javascript,${encodeURIComponent(COUNTED)}`;

  for (const helpers of [1, 3]) {
    test(`each part is computed once, by ${helpers + 1} threads`, async () => {
      const { createDivision, computeProduct } = await import(built("cpu_division.js"));
      const { countIn } = await import(counted);
      const division = createDivision();
      const counts = new Int32Array(new SharedArrayBuffer(4 * 12));
      const workers = Array.from(
        { length: helpers },
        () =>
          new Worker(
            `import { workerData, parentPort } from "node:worker_threads";
             const { serveProducts } = await import(${JSON.stringify(built("cpu_division.js"))});
             const { countIn } = await import(${JSON.stringify(counted)});
             parentPort.postMessage("ready");
             serveProducts(workerData.division, countIn(workerData.counts));`,
            { eval: true, execArgv: ["--input-type=module"], workerData: { division, counts } },
          ),
      );
      try {
        const ready = workers.map((worker) => new Promise((done) => worker.once("message", done)));
        await Promise.all(ready);
        const compute = countIn(counts);
        for (let product = 0; product < 20_000; product++) {
          // Addresses above 2 GiB, too.
          const address = product === 13 ? 13 : product + (product % 2) * 0xf000_0000;
          const parts = 2 + (address % 9);
          counts.fill(0);
          const computed = computeProduct(division, compute, address, parts);
          assert.equal(computed, address !== 13, `product ${product}`);
          const expected = Array.from({ length: 12 }, (_, i) => +(i > 0 && i <= parts));
          assert.deepEqual([...counts], expected, `product ${product}`);
          if (product % 4000 === 0) await new Promise((done) => setTimeout(done, 5));
        }
      } finally {
        await Promise.all(workers.map((worker) => worker.terminate()));
      }
    });
  }

  test("a memory is declared as shared", async () => {
    const { withSharedMemory } = await import(built("shared_memory.js"));
    const module = (memory) =>
      Uint8Array.of(
        ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
        // A custom section in front.
        ...[0, 3, 1, 0x78, 5],
        ...[5, memory.length + 1, 1, ...memory],
        ...[7, 5, 1, 1, 0x6d, 2, 0],
      );
    // Without and with a maximum; 300 pages take two bytes.
    for (const memory of [
      [0, 0xac, 2],
      [1, 0xac, 2, 0xad, 2],
    ]) {
      const { instance } = await WebAssembly.instantiate(withSharedMemory(module(memory)));
      const { m } = instance.exports;
      assert.ok(m.buffer instanceof SharedArrayBuffer);
      assert.equal(m.buffer.byteLength, 300 << 16);
      m.grow(100);
      assert.equal(m.buffer.byteLength, 400 << 16);
    }
    // A function, a global and a table are imported, too, before the memory.
    const imports = [
      [0, 0],
      [3, 0x7f, 0],
      [1, 0x70, 1, 1, 2],
      [2, 0, 1],
      [3, 0x7f, 0],
    ];
    const list = imports.flatMap((kind) => [1, 0x6d, 1, 0x6e, ...kind]);
    const importing = Uint8Array.of(
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...[1, 4, 1, 0x60, 0, 0],
      ...[2, list.length + 1, imports.length, ...list],
    );
    const memoriesOf = (bytes) =>
      WebAssembly.Module.imports(new WebAssembly.Module(bytes)).map(({ kind }) => kind);
    const shared = withSharedMemory(importing);
    assert.deepEqual(memoriesOf(shared), memoriesOf(importing));
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
    const only = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 2, 8, 1, 1, 0x6d, 1, 0x6e, 2, 0, 1);
    const link = (bytes) => WebAssembly.instantiate(bytes, { m: { n: memory } });
    await assert.rejects(link(only), /shared/);
    await link(withSharedMemory(only));
    const none = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    assert.equal(withSharedMemory(none), undefined);
  });
});

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";
const BODY = { model: "tales", prompt: "Once upon a time", temperature: 0, max_tokens: 64 };

describe("the CPU device in a cross-origin isolated page", { skip }, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ isolated: true });
    page = await harness.open();
  });
  after(() => harness?.close());

  const run = (options, body = BODY) =>
    page.evaluate(
      async ([options, body]) => {
        const engine = await inpage.createEngine({ device: "cpu", ...options });
        const { choices } = await engine.completions.create({ ...body, logprobs: 3 });
        const { threads, adapter } = await engine.info();
        await engine.dispose();
        return { threads, adapter, choice: choices[0] };
      },
      [options, body],
    );

  test("has threads, which change no bit of an answer", async () => {
    assert.equal(await page.evaluate(() => crossOriginIsolated), true);
    const alone = await run({ threads: 1 });
    assert.equal(alone.threads, 1);
    for (const threads of [2, 3]) {
      const together = await run({ threads });
      assert.equal(together.threads, threads);
      assert.deepEqual(together.choice, alone.choice);
    }
    const usual = await run({});
    const processors = await page.evaluate(() => navigator.hardwareConcurrency);
    assert.equal(usual.threads, Math.min(processors, 8));
    assert.deepEqual(usual.choice, alone.choice);
  });

  test("answers in any language through shared memory", async () => {
    const prompt = "Ünïcode 🙂 中文 \u0000";
    const echo = { ...BODY, prompt, echo: true, max_tokens: 4 };
    const [alone, together] = [await run({ threads: 1 }, echo), await run({ threads: 2 }, echo)];
    assert.ok(together.choice.text.startsWith(prompt));
    assert.deepEqual(together.choice, alone.choice);
  });

  test("works without relaxed SIMD", async () => {
    const found = await run({ threads: 2, workerUrl: "/fixtures/no_relaxed_simd_worker.mjs" });
    assert.deepEqual([found.threads, found.adapter], [2, "CPU (simd128)"]);
    assert.deepEqual(found.choice, (await run({ threads: 1 })).choice);
  });

  test("a number of threads that makes no sense is refused", async () => {
    for (const threads of [0, 1.5, "2"]) {
      const { message } = await page.evaluate(
        (threads) => caught(() => inpage.createEngine({ device: "cpu", threads })),
        threads,
      );
      assert.match(message, /^threads: .* is not a positive integer/);
    }
  });
});
