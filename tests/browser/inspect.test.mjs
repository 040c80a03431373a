//! `inspectModel` in a page: local files and other origins, split files and folders. Only headers are read.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { shardSafetensors, splitGguf } from "./containers.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { startModelServer } from "./model_server.mjs";

const TALES = readFileSync(join(root, "www/models/tales.gguf"));
const MISTRAL = join(root, "tests/parity/models/mistral-hf");

/** The folder, and the same folder with eight shards, more than the connections that a browser opens to a server. */
function shardedFolder(extraBytes) {
  const files = { "model.safetensors": readFileSync(join(MISTRAL, "model.safetensors")) };
  for (const name of ["config.json", "tokenizer.json", "tokenizer_config.json"]) {
    files[name] = readFileSync(join(MISTRAL, name));
  }
  const { "model.safetensors": whole, ...rest } = files;
  return { whole: files, sharded: { ...rest, ...shardSafetensors(whole, 8, extraBytes) } };
}

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

  test("reports the same for a file and a URL", async () => {
    const load = { contextTokens: 256, kvFormat: "f32", kvPoolTokens: 512 };
    const { value: remote } = await inspect(server.url, { load });
    assert.ok(remote.runs);
    assert.equal(remote.fileBytes, state.bytes.length);
    assert.equal(remote.model.memory.contextTokens, 256);
    assert.equal(remote.model.memory.kvPoolTokens, 512);
    assert.ok(state.sentBytes < 1 << 20, `${state.sentBytes} bytes`);
    const local = await page.evaluate(
      async ([url, load]) => {
        const blob = await (await fetch(url)).blob();
        return inpage.inspectModel(new File([blob], "tales.gguf"), { load });
      },
      ["/models/tales.gguf", load],
    );
    assert.deepEqual(local, { ...remote, fileBytes: TALES.length });
  });

  test("reads from servers that hide the size or do not support ranges", {
    timeout: 60_000,
  }, async () => {
    for (const change of [{ exposeHeaders: false }, { ranges: false }]) {
      // A request for much more than the header would never end. Some more is sent, because sockets buffer.
      Object.assign(state, { exposeHeaders: true, ranges: true, stallAfter: 2 << 20, ...change });
      const { value } = await inspect(server.url);
      assert.ok(value.runs);
      assert.equal(value.fileBytes, state.bytes.length);
    }
  });

  test("reports the same for a split file, whichever part is named", async () => {
    const whole = (await inspect("/models/tales.gguf")).value;
    assert.deepEqual(whole.container, { kind: "gguf", files: 1 });
    const parts = splitGguf("tales", TALES, 3);
    const total = Object.values(parts).reduce((sum, { length }) => sum + length, 0);
    const state = { files: { ...parts } };
    const server = await startModelServer(state);
    const at = (number) => new URL(`tales-0000${number}-of-00003.gguf`, server.url).href;
    try {
      for (const number of [1, 3]) {
        const { value, message } = await inspect(at(number));
        assert.deepEqual(value?.container, { kind: "gguf", files: 3 }, message);
        assert.equal(value.fileBytes, total);
        assert.deepEqual([value.model, value.runs], [whole.model, true]);
      }
      const picked = await page.evaluate(async (urls) => {
        const read = urls.map(async (url) => {
          const bytes = await (await fetch(url)).arrayBuffer();
          return new File([bytes], url.split("/").at(-1));
        });
        return inpage.inspectModel({ files: (await Promise.all(read)).reverse() });
      }, [1, 2, 3].map(at));
      assert.deepEqual([picked.model, picked.fileBytes], [whole.model, total]);
      delete state.files["tales-00002-of-00003.gguf"];
      const { value } = await inspect(at(1));
      assert.match(value.refusal.message, /"tales-00002-of-00003\.gguf"/);
    } finally {
      await server.close();
    }
  });

  test("reports the same for the URL of a folder and for its files", {
    timeout: 60_000,
  }, async () => {
    const { whole, sharded } = shardedFolder(1 << 20);
    const picked = await page.evaluate(
      (files) =>
        inpage.inspectModel({
          files: files.map(
            ([name, bytes]) =>
              new File([Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0))], name),
          ),
        }),
      Object.entries(whole).map(([name, bytes]) => [name, bytes.toString("base64")]),
    );
    assert.ok(picked.runs, picked.refusal?.message);
    assert.deepEqual(picked.container, { kind: "safetensors", files: 1 });
    assert.equal(picked.fileBytes, whole["model.safetensors"].length);
    assert.equal(picked.model.tensorTypes[0].type, "Q8_0");

    const state = { files: sharded, hideLength: true };
    const server = await startModelServer(state);
    const at = new URL("/org/name/resolve/main", server.url).href;
    try {
      const { value, message } = await inspect({ folder: at });
      assert.deepEqual(value?.container, { kind: "safetensors", files: 8 }, message);
      assert.deepEqual(value.tokenizer, picked.tokenizer);
      assert.deepEqual(value.model.memory, picked.model.memory);
      const stored = await inspect({ folder: at }, { load: { quantize: "none" } });
      assert.equal(stored.value.model.tensorTypes[0].type, "F16");
      assert.ok(stored.value.model.memory.weightBytes > picked.model.memory.weightBytes);
      // If the rest of a response is not cancelled, later requests never get a connection.
      Object.assign(state, { ranges: false, hideLength: false, stallAfter: 512 << 10 });
      const streamed = await inspect({ folder: at });
      assert.deepEqual(streamed.value?.model, value.model, streamed.message);

      delete state.files["part-5.safetensors"];
      const lacking = await inspect({ folder: at });
      assert.match(lacking.value.refusal.message, /no file "part-5\.safetensors"$/);
      delete state.files["config.json"];
      const none = await inspect({ folder: at });
      assert.equal(none.code, "model_not_readable");
      assert.match(none.message, /main\/config\.json answered 404/);
    } finally {
      await server.close();
    }
  });

  test("distinguishes a model that does not run from one that cannot be read", async () => {
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
