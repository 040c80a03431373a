//! Large models in Chromium, with the real engine: what the wasm module holds while it loads more than a gigabyte, and
//! tensors beyond 4 GiB, where 32 bits are not enough for an offset. The server invents most of the bytes.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { readHeader, writeHeader, zeroLlama } from "../../scripts/gguf_header.mjs";
import { root } from "../../scripts/process.mjs";
import { serveSparse } from "../../scripts/sparse_server.mjs";
import { startHarness, wasmIsBuilt } from "../browser/harness.mjs";

const MIB = 1 << 20;
const SMALL = readFileSync(join(root, "tests/parity/models/llama.gguf"));
/** The memory that the wasm module may hold while it loads; the rest of the model is on the GPU or not there yet. */
const MOST_WASM_BYTES = 128 * MIB;

describe("large models", { skip: !wasmIsBuilt && "the wasm module is not built" }, () => {
  let harness;

  before(async () => {
    harness = await startHarness({ args: ["--js-flags=--expose-gc"] });
  });
  after(() => harness?.close());

  test("1.1 GB of weights are loaded with less than 128 MiB of wasm memory", async () => {
    const shape = { layers: 17, heads: 32, kvHeads: 8, headDim: 64, ffnDim: 8192, type: "Q8_0" };
    const { header, sizeBytes } = zeroLlama(SMALL, shape);
    assert.ok(sizeBytes > 1e9);
    const server = await serveSparse({ parts: [{ at: 0, bytes: header }], sizeBytes });
    const page = await harness.open();
    try {
      const { memory, info, load_ms } = await page.evaluate(async (url) => {
        const start = performance.now();
        const engine = await inpage.createEngine({
          device: "webgpu",
          model: { url, cache: false },
          load: { contextTokens: 128 },
          workerUrl: "/fixtures/measured_worker.mjs",
        });
        const load_ms = performance.now() - start;
        const channel = new BroadcastChannel("memory");
        const memory = await new Promise((resolve) => {
          channel.onmessage = ({ data }) => data.report && resolve(data.report);
          channel.postMessage({ question: 1 });
        });
        const info = await engine.info();
        await engine.dispose();
        return { memory, info, load_ms };
      }, server.url);
      console.log(
        `${(sizeBytes / 1e9).toFixed(2)} GB in ${(load_ms / 1000).toFixed(1)} s: wasm ${(memory.wasmBytes / MIB).toFixed(1)} MiB, GPU buffers ${(memory.bufferBytes / MIB).toFixed(0)} MiB`,
      );
      assert.equal(info.fileBytes, sizeBytes);
      assert.ok(memory.bufferBytes > sizeBytes, "the weights are on the GPU");
      // It never shrinks: this is the most that was held.
      assert.ok(memory.wasmBytes < MOST_WASM_BYTES, `${memory.wasmBytes} bytes`);
    } finally {
      await page.context().close();
      await server.close();
    }
  });

  describe("beyond 4 GiB", () => {
    /** This tensor begins before 4 GiB and ends behind it; those after it lie beyond. */
    const STRADDLING = "blk.1.ffn_gate.weight";
    const header = readHeader(SMALL);
    const first = header.tensors.find(({ name }) => name === STRADDLING).offset;
    const shift = 2 ** 32 - 4096 - first;
    const moved = header.tensors.map((tensor) =>
      tensor.offset < first ? tensor : { ...tensor, offset: tensor.offset + shift },
    );
    const head = writeHeader(header, moved);
    const parts = [
      { at: 0, bytes: Buffer.concat([head, SMALL.subarray(head.length, first)]) },
      { at: first + shift, bytes: SMALL.subarray(first) },
    ];
    const sizeBytes = SMALL.length + shift;
    let page;
    let expected;

    before(async () => {
      assert.ok(shift % 32 === 0 && sizeBytes > 2 ** 32);
      page = await harness.open();
      await page.evaluate(() => {
        /** The answer of the model, with numbers that depend on every weight. */
        window.answersOf = async (model) => {
          const engine = await inpage.createEngine({ model });
          const prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9];
          const body = { model: "default", prompt, max_tokens: 8, temperature: 0, logprobs: 3 };
          const { choices } = await engine.completions.create({ ...body, ignore_eos: true });
          const { fileBytes } = await engine.info();
          await engine.dispose();
          return { choices, fileBytes };
        };
      });
      const small = await serveSparse({
        parts: [{ at: 0, bytes: SMALL }],
        sizeBytes: SMALL.length,
      });
      expected = await page.evaluate((url) => answersOf({ url, cache: false }), small.url);
      await small.close();
      assert.equal(expected.choices[0].logprobs.tokens.length, 8);
    });
    after(() => page?.context().close());

    test("a URL is read by ranges", async () => {
      const server = await serveSparse({ parts, sizeBytes });
      const found = await page.evaluate((url) => answersOf({ url, cache: false }), server.url);
      await server.close();
      assert.deepEqual(found, { ...expected, fileBytes: sizeBytes });
      const starts = server.ranges.map((range) => Number(/\d+/.exec(range)));
      assert.ok(Math.max(...starts) > 2 ** 32 - MIB, `${server.ranges}`);
    });

    test("a picked file is read in slices", async () => {
      const server = await serveSparse({
        parts: [{ at: 0, bytes: SMALL }],
        sizeBytes: SMALL.length,
      });
      const found = await page.evaluate(
        async ({ url, head, first, shift }) => {
          const small = new Uint8Array(await (await fetch(url)).arrayBuffer());
          // One Blob many times: the browser holds its bytes once.
          const zeros = new Blob([new Uint8Array(64 << 20)]);
          const gap = [];
          let left = shift;
          for (; left >= zeros.size; left -= zeros.size) gap.push(zeros);
          gap.push(zeros.slice(0, left));
          const [from, to] = [new Uint8Array(head), small.subarray(first)];
          const file = new File([from, small.subarray(head.length, first), ...gap, to], "m.gguf");
          return answersOf({ file });
        },
        { url: server.url, head: [...head], first, shift },
      );
      await server.close();
      assert.deepEqual(found, { ...expected, fileBytes: sizeBytes });
    });
  });
});
