//! `inspectModel` in a page: local files and other origins, read no further than the header.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { startModelServer } from "./model_server.mjs";

const TALES = readFileSync(join(root, "www/models/tales.gguf"));

describe("inspectModel", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  const state = { bytes: Buffer.concat([TALES, Buffer.alloc(8 << 20)]), etag: '"one"' };
  let harness;
  let server;
  let page;

  before(async () => {
    harness = await startHarness();
    server = await startModelServer(state);
    page = await harness.open();
  });
  after(async () => {
    await harness?.close();
    await server?.close();
  });

  const inspect = (url, options) =>
    page.evaluate(
      ([url, options]) => caught(() => inpage.inspectModel(url, options)),
      [url, options],
    );

  test("tells the same of a file and of a URL", async () => {
    const load = { contextTokens: 256, kvFormat: "f32", kvPoolTokens: 512 };
    const { value: remote } = await inspect(server.url, { load });
    assert.ok(remote.runs);
    assert.equal(remote.file_bytes, state.bytes.length);
    assert.equal(remote.model.memory.context_tokens, 256);
    assert.equal(remote.model.memory.kv_pool_tokens, 512);
    assert.ok(state.sentBytes < 1 << 20, `${state.sentBytes} bytes`);
    const local = await page.evaluate(
      async ([url, load]) => {
        const blob = await (await fetch(url)).blob();
        return inpage.inspectModel(new File([blob], "tales.gguf"), { load });
      },
      ["/models/tales.gguf", load],
    );
    assert.deepEqual(local, { ...remote, file_bytes: TALES.length });
  });

  test("reads from servers that hide the size or know no ranges", { timeout: 60_000 }, async () => {
    for (const change of [{ exposeHeaders: false }, { ranges: false }]) {
      // Who asks for more than the head waits for ever: sockets take more than is read of them.
      Object.assign(state, { exposeHeaders: true, ranges: true, stallAfter: 2 << 20, ...change });
      const { value } = await inspect(server.url);
      assert.ok(value.runs);
      assert.equal(value.file_bytes, state.bytes.length);
    }
  });

  test("tells a model that does not run from one that cannot be had", async () => {
    const told = await page.evaluate(() => inpage.inspectModel(new Blob(["<!doctype html>"])));
    assert.ok(!told.runs && told.model === null && told.tokenizer === null);
    assert.equal(told.refusal.code, "invalid_model_file");
    const small = await inspect("/models/tales.gguf", { maxBindingBytes: 100_000 });
    assert.equal(small.value.refusal.code, "unsupported_model");
    const missing = await inspect("/models/none.gguf");
    assert.equal(missing.className, "InpageError");
    assert.equal(missing.code, "model_not_readable");
    assert.match(missing.message, /none\.gguf answered 404/);
    const wrong = await inspect("/models/tales.gguf", { load: { context: 1 } });
    assert.match(wrong.message, /unknown field `context`/);
  });
});
