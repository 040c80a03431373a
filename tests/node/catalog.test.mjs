//! The catalog: its entries, names in options and in commands, and the check of its files, against a local hub.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createEngine, cache, inspectModel } from "inpage";
import { catalog } from "inpage/catalog";
import { headerOf } from "../../scripts/catalog/header.mjs";
import { PUBLISHED_BYTES } from "../../scripts/catalog/published_sizes.mjs";
import { SHAPES } from "../../scripts/catalog/shapes.mjs";
import { sizesOf } from "../../scripts/catalog/table.mjs";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { startHub } from "../delivery/hub_server.mjs";
import { startServe } from "./serve_process.mjs";

const load = (file) => import(join(root, "www/dist", file));
const { isCatalogName } = await load("options/catalog_name.js");
const { resolveModel } = await load("options/model.js");

const NAME = "smollm2-135m-instruct";
/** Stands for the file of every model: the tests of the real one are elsewhere. */
const TALES = readFileSync(join(root, "www/models/tales.gguf"));
const LLAMA = readFileSync(join(root, "tests/parity/models/llama.gguf"));

/** The path of a model's file on the hub's second server. */
const pathOf = (reference) =>
  new URL(resolveModel(reference).location.urls[0]).pathname.replace("/resolve/", "/");
const entryOf = (name) => catalog.find((model) => model.name === name);
const faithfulFile = (name) => {
  const { header, sparseBytes } = headerOf(SHAPES[name]);
  return Buffer.concat([header, Buffer.alloc(sparseBytes - header.length)]);
};

let hub;
before(async () => {
  const bge = entryOf("bge-small-en-v1.5").files.model;
  hub = await startHub({
    [pathOf(entryOf(NAME).files.model)]: TALES,
    [pathOf(bge)]: faithfulFile("bge-small-en-v1.5"),
    [pathOf(entryOf("bge-base-en-v1.5").files.model)]: faithfulFile("bge-small-en-v1.5"),
    [pathOf(entryOf("smolvlm-256m-instruct").files.model)]: LLAMA,
  });
  process.env.INPAGE_CACHE_DIR = temporaryFolder("inpage-catalog-");
  process.env.HF_ENDPOINT = hub.hub.origin;
});
after(() => hub.close());

function runNode(...args) {
  return new Promise((resolve) => {
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? 0, stdout, stderr }),
    );
  });
}
const command = (...args) => runNode(join(root, "www/bin/inpage.mjs"), ...args);
const check = (...args) => runNode(join(root, "scripts/catalog.mjs"), "--check", ...args);

describe("the catalog", () => {
  test("has the sizes that the list of models tells", () => {
    const text = readFileSync(join(root, "docs/models.md"), "utf8");
    assert.ok(text.includes(sizesOf(catalog)), "npm run catalog writes the table");
  });

  test("has a model for each task, and each name once", () => {
    assert.ok(catalog.length >= 25, `${catalog.length} models`);
    assert.equal(new Set(catalog.map(({ name }) => name)).size, catalog.length);
    for (const task of ["chat", "reasoning", "code", "vision", "embedding", "rerank"]) {
      const some = catalog.filter(({ tasks }) => tasks.includes(task));
      assert.ok(some.length >= 2, `${some.length} models for ${task}`);
      // A reranker writes nothing.
      if (task === "rerank") assert.ok(some.every(({ tasks }) => tasks.length === 1));
    }
    assert.deepEqual(Object.keys(SHAPES).sort(), catalog.map(({ name }) => name).sort());
  });

  test("has the sizes of files that are published, which agree with the shapes", () => {
    for (const [name, bytes] of Object.entries(PUBLISHED_BYTES)) {
      const model = entryOf(name);
      assert.ok(["size", "headers"].includes(model.verified), name);
      const { projectorBytes = 0, ...shape } = SHAPES[name];
      assert.equal(model.bytes, bytes + projectorBytes, name);
      // The folder of MiniLM is in F32.
      if (model.type === "F32") continue;
      const { fileBytes } = headerOf(shape);
      assert.ok(Math.abs(fileBytes / bytes - 1) < 0.012, `${name}: ${fileBytes} by its shape`);
    }
  });

  for (const model of catalog) {
    test(`describes ${model.name}`, () => {
      assert.ok(isCatalogName(model.name), "a URL or a file's name");
      const { location } = resolveModel(model.files.model);
      assert.match(location.urls[0], /^https:\/\/huggingface\.co\//);
      assert.equal(model.files.projector !== undefined, model.tasks.includes("vision"));
      assert.ok(model.bytes < 5e9 && model.bytes > 3e7, `${model.bytes} bytes`);
      const { context4k, context16k } = model.memory;
      assert.ok(context16k >= context4k && context4k > 0.2 * model.bytes, `${context4k} bytes`);
      assert.ok(model.contextTokens >= 512 && model.parameters > 2e7);
      assert.ok(model.sources.every((url) => URL.canParse(url)));
      assert.match(model.goodFor, /^[A-Z].*\.$/);
      assert.ok(model.languages.every((tag) => tag === "mul" || /^[a-z]{2}$/.test(tag)));
    });
  }
});

describe("a name in options", () => {
  test("is none of the other forms of a model", () => {
    for (const place of [
      ...["embedded", "model.gguf", "./qwen3-0.6b", "/qwen3-0.6b", "models/qwen3-0.6b"],
      ...["hf:Qwen/Qwen3-0.6B", "https://a.example/m", "weights.bin", "Qwen/Qwen3-0.6B", ""],
      // There are a file and a folder of these names in the working directory.
      ...["LICENSE", "www", undefined, new URL("https://a.example/qwen3-0.6b"), new Blob([])],
    ]) {
      assert.equal(isCatalogName(place), false, `${place}`);
    }
  });

  test("loads the model, whose id it is", async () => {
    const engine = await createEngine({ model: NAME, hub: { baseURL: hub.hub.origin } });
    try {
      assert.equal((await engine.info()).model, NAME);
      const { choices } = await engine.completions.create({
        model: NAME,
        prompt: "Once",
        max_tokens: 3,
      });
      assert.ok(choices[0].text.length > 0);
    } finally {
      await engine.dispose();
    }
  });

  test("may be one of several models, with other options", async () => {
    const models = { story: NAME, other: { model: { url: NAME, cache: false }, aliases: ["o"] } };
    const engine = await createEngine({ models, hub: { baseURL: hub.hub.origin } });
    try {
      for (const model of ["story", "o"]) {
        const { choices } = await engine.completions.create({
          ...{ model, prompt: "Once", max_tokens: 3 },
        });
        assert.ok(choices[0].text.length > 0);
      }
    } finally {
      await engine.dispose();
    }
  });

  test("that the catalog does not have is refused with similar ones", async () => {
    for (const run of [
      () => createEngine({ model: "qwen3-0.5b" }),
      () => createEngine({ models: { a: { model: "qwen3-0.5b" } } }),
      () => inspectModel("qwen3-0.5b"),
      () => cache.pin("qwen3-0.5b"),
    ]) {
      await assert.rejects(run, (error) => {
        assert.deepEqual([error.name, error.code], ["InpageError", "invalid_option"]);
        assert.match(error.message, /no model "qwen3-0\.5b" \(similar names: qwen3-0\.6b, /);
        return true;
      });
    }
  });

  test("brings the projector, which another one replaces", async () => {
    const hubOptions = { hub: { baseURL: hub.hub.origin } };
    await assert.rejects(
      createEngine({ model: "smolvlm-256m-instruct", ...hubOptions }),
      /projector: .*mmproj-SmolVLM-256M-Instruct-Q8_0\.gguf/,
    );
    const projector = new Blob(["not one"]);
    await assert.rejects(
      createEngine({ model: "smolvlm-256m-instruct", projector, ...hubOptions }),
      (error) => !/mmproj-SmolVLM/.test(error.message),
    );
  });
});

describe("inpage models", () => {
  test("lists what fits", async () => {
    const { status, stdout } = await command("models", "--task", "vision", "--max-bytes", "0.6GB");
    assert.equal(status, 0);
    assert.match(stdout, /^NAME +TASKS.*\nsmolvlm-256m-instruct .*\nsmolvlm-500m-instruct .*\n$/);
  });

  test("lists rerankers by their task", async () => {
    const { stdout } = await command("models", "--task", "rerank");
    assert.match(
      stdout,
      /^NAME .*\nbge-reranker-v2-m3 +rerank +636 MB .*\nqwen3-reranker-0\.6b .*\n$/,
    );
  });

  test("prints entries", async () => {
    const { stdout } = await command("models", "qwen3-0.6b", "--json");
    assert.deepEqual(JSON.parse(stdout), [entryOf("qwen3-0.6b")]);
    assert.match((await command("models", "qwen3-0.6b")).stdout, /^qwen3-0\.6b\n {2}Title: +Qwen3/);
  });

  test("fails where nothing fits, and for wrong arguments", async () => {
    assert.equal((await command("models", "--max-bytes", "1")).status, 1);
    assert.equal((await command("models", "nothing")).status, 1);
    const { status, stderr } = await command("models", "--task", "song");
    assert.equal(status, 2);
    assert.match(stderr, /^inpage models: --task is chat, .*, not song\n/);
    assert.equal((await command("models", "--max-bytes", "big")).status, 2);
  });
});

describe("inpage pull", () => {
  test("stores a model, which then needs no network", async () => {
    await cache.delete({
      url: resolveModel(entryOf(NAME).files.model, { baseURL: hub.hub.origin }).location.urls[0],
    });
    const { status, stdout, stderr } = await command("pull", NAME);
    assert.deepEqual([status, stderr], [0, ""]);
    assert.equal(stdout, `${NAME}: ${(TALES.length / 1e6).toFixed(1)} MB are in the cache\n`);
    const files = await cache.list();
    const stored = files.find(({ url }) => url.includes("SmolLM2-135M"));
    assert.deepEqual([stored.complete, stored.sizeBytes], [true, TALES.length]);
  });

  test("refuses what does not exist and what is here already", async () => {
    for (const [place, message] of [
      ["qwen3-0.5b", /similar names: qwen3-0\.6b/],
      ["qwen3-0.6b", /Qwen3-0\.6B-Q8_0\.gguf/],
      [join(root, "www/models/tales.gguf"), /is on this machine/],
    ]) {
      const { status, stderr } = await command("pull", place);
      assert.equal(status, 1);
      assert.match(stderr, message);
    }
    assert.equal((await command("pull")).status, 2);
  });
});

test("inpage serve takes a name", async () => {
  const server = await startServe(NAME);
  try {
    const { data } = await (await fetch(`${server.origin}/v1/models`)).json();
    assert.deepEqual(
      data.map(({ id }) => id),
      [NAME],
    );
  } finally {
    await server.stop();
  }
});

test("inpage inspect takes a name", async () => {
  const { status, stdout } = await command("inspect", NAME, "--json");
  assert.equal(status, 0);
  assert.equal(JSON.parse(stdout).fileBytes, TALES.length);
});

describe("the check of the catalog", () => {
  test("agrees with files that are as the catalog says", async () => {
    const { status, stdout, stderr } = await check("bge-small-en-v1.5");
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout + stderr, /bge-small-en-v1\.5: as the catalog says \(bert\)/);
  });

  test("tells what differs, and what is missing", async () => {
    const { status, stdout, stderr } = await check("bge-base-en-v1.5", "bge-small-en-v1.5");
    assert.equal(status, 1);
    assert.match(
      stdout + stderr,
      /bge-base-en-v1\.5: parameters 108891648 should be 33212160; bytes/,
    );
    const missing = await check("qwen3-0.6b");
    assert.equal(missing.status, 1);
    assert.match(missing.stdout + missing.stderr, /qwen3-0\.6b: .*Qwen3-0\.6B-Q8_0\.gguf/);
  });
});
