//! `createEngine` in Node: the embedded model, files on disk, aborts, errors, and the end of the program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import {
  createEngine,
  getEngine,
  InpageError,
  inspectModel,
  serveFromPage,
  servedFetch,
} from "inpage";
import OpenAI from "openai";
import { root, which } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { splitGguf } from "../browser/containers.mjs";

const TALES = join(root, "www/models/tales.gguf");
const LLAMA = join(root, "tests/parity/models/llama.gguf");
const ADAPTER = join(root, "tests/parity/adapters/llama");
const QWEN3_FOLDER = join(root, "tests/parity/models/qwen3-hf");
const PORTABLE = fileURLToPath(new URL("portable.mjs", import.meta.url));

const PROMPT = "Once upon a time";
const greedy = { model: "default", prompt: PROMPT, temperature: 0, max_tokens: 16 };
/** Takes much longer than a test waits for its start. */
const long = { ...greedy, prompt: Array(64).fill(PROMPT), max_tokens: 400, ignore_eos: true };

/** Resolves once something is generated. */
async function busy(engine) {
  while ((await engine.info()).activeGenerations === 0) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Resolves once nothing is generated. */
async function idle(engine) {
  while ((await engine.info()).activeGenerations > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("an engine with several models", () => {
  const models = {
    story: { model: TALES, aliases: ["gpt-4"], device: "auto" },
    texts: join(root, "tests/parity/embeddings/bert.gguf"),
  };
  const statuses = async (engine) =>
    (await (await engine.fetch("http://localhost/v1/models")).json()).data.map(
      ({ status }) => status,
    );

  test("each is loaded when it is asked for, and computes on the CPU", async () => {
    const phases = [];
    const onProgress = ({ model, phase }) => phases.push(`${model} ${phase}`);
    const engine = await createEngine({ models, onProgress });
    try {
      assert.deepEqual(await statuses(engine), ["unloaded", "unloaded"]);
      const { model } = await engine.completions.create({ ...greedy, model: "gpt-4" });
      assert.equal(model, "story");
      assert.deepEqual(await statuses(engine), ["ready", "unloaded"]);
      const { data } = await engine.embeddings.create({ model: "default", input: "A sentence." });
      assert.ok(data[0].embedding.length > 8);
      const { story, texts } = (await engine.info()).models;
      assert.deepEqual([story.device, texts.device], ["cpu", "cpu"]);
      assert.ok(story.memoryBytes > 1_000_000 && texts.memoryBytes > 100_000);
      assert.ok(phases.indexOf("story ready") < phases.indexOf("texts ready"));
    } finally {
      await engine.dispose();
    }
  });

  test("a budget for one of them leaves one loaded", async () => {
    const engine = await createEngine({ models });
    let needed;
    try {
      await engine.loadModel("story");
      await engine.loadModel("texts");
      const infos = Object.values((await engine.info()).models);
      needed = Math.max(...infos.map(({ memoryBytes }) => memoryBytes));
    } finally {
      await engine.dispose();
    }
    const limited = await createEngine({ models, memoryBudgetBytes: needed });
    try {
      await limited.loadModel("gpt-4");
      await limited.loadModel("texts");
      assert.deepEqual(await statuses(limited), ["unloaded", "ready"]);
    } finally {
      await limited.dispose();
    }
  });

  test("a device that this program lacks is named", async () => {
    const wrong = { story: { model: TALES, device: "webgpu" } };
    if (globalThis.navigator?.gpu !== undefined) return;
    await assert.rejects(createEngine({ models: wrong }), { code: "no_webgpu_device" });
  });
});

describe("an engine with the embedded model", () => {
  let engine;
  const phases = [];
  const given = { fetch: globalThis.fetch, self: globalThis.self };

  before(async () => {
    engine = await createEngine({
      onProgress: ({ phase }) => phases.push(phase),
      endpoint: { maxN: 2 },
    });
  });
  after(() => engine?.dispose());

  test("computes on the CPU and reports it", async () => {
    const { device, model, adapter, storage, tools } = await engine.info();
    assert.deepEqual([device, model, storage], ["cpu", "tales", undefined]);
    assert.equal(tools ?? null, null, "it has no chat template");
    assert.ok(adapter.length > 0);
    assert.equal(phases.at(-1), "ready");
  });

  test("says how tools get into prompts", async () => {
    const words = "{% for message in messages %}{{ message.content }}{% endfor %}";
    for (const [chatTemplate, expected] of [
      [words, "generic"],
      [`{% for tool in tools %}{{ tool.function.name }}{% endfor %}${words}`, "template"],
    ]) {
      const other = await createEngine({ endpoint: { chatTemplate } });
      try {
        assert.equal((await other.info()).tools, expected);
      } finally {
        await other.dispose();
      }
    }
  });

  test("has threads, which change no bit of an answer", async () => {
    const answers = [];
    for (const threads of [1, 2, 3]) {
      const other = await createEngine({ threads });
      assert.equal((await other.info()).threads, threads);
      const { choices } = await other.completions.create({ ...greedy, logprobs: 3 });
      answers.push(choices);
      await other.dispose();
    }
    assert.deepEqual(answers[1], answers[0]);
    assert.deepEqual(answers[2], answers[0]);
    await assert.rejects(createEngine({ threads: 0 }), /threads: 0 is not a positive integer/);
  });

  test("streams the same text as it answers at once", async () => {
    const plain = await engine.completions.create(greedy);
    assert.equal(plain.usage.completion_tokens, 16);
    const texts = [];
    for await (const { choices } of await engine.completions.create({ ...greedy, stream: true })) {
      texts.push(choices[0].text);
    }
    assert.ok(texts.length > 1);
    assert.equal(texts.join(""), plain.choices[0].text);
    assert.match(plain.choices[0].text, /[a-z]{3}/);
  });

  test("is a fetch for the openai package", async () => {
    const { fetch } = engine;
    const client = new OpenAI({ apiKey: "none", baseURL: "https://localhost/v1", fetch });
    const plain = await client.completions.create(greedy);
    let text = "";
    for await (const chunk of await client.completions.create({ ...greedy, stream: true })) {
      text += chunk.choices[0].text;
    }
    assert.equal(text, plain.choices[0].text);
    assert.equal((await client.models.retrieve("tales")).id, "tales");
    await assert.rejects(client.completions.create({ ...greedy, n: 3 }), OpenAI.BadRequestError);
  });

  test("an abort stops the generation, streamed and not", async () => {
    for (const stream of [true, false]) {
      const controller = new AbortController();
      const { signal } = controller;
      const running = (async () => {
        const answer = await engine.completions.create({ ...long, stream }, { signal });
        for await (const _ of answer) controller.abort();
      })();
      if (!stream) {
        await busy(engine);
        controller.abort();
      }
      await assert.rejects(running, { name: "AbortError" });
      await idle(engine);
    }
    assert.equal((await engine.completions.create(greedy)).usage.completion_tokens, 16);
  });

  test("leaves the program's globals alone", () => {
    assert.deepEqual({ fetch: globalThis.fetch, self: globalThis.self }, given);
  });

  test("reload starts a new thread, and dispose ends requests", async () => {
    const { text } = (await engine.completions.create(greedy)).choices[0];
    await engine.reload();
    assert.equal((await engine.completions.create(greedy)).choices[0].text, text);
    const running = engine.completions.create(long);
    running.catch(() => {});
    await busy(engine);
    await engine.dispose();
    await assert.rejects(running, InpageError);
    await assert.rejects(engine.completions.create(greedy), { code: "engine_unavailable" });
  });
});

describe("models on disk", () => {
  /** The id and the answer of a model. */
  async function answerOf(model) {
    const engine = await createEngine({ model });
    try {
      const { choices } = await engine.completions.create(greedy);
      const { model: id, storage } = await engine.info();
      assert.equal(storage, undefined, "a local file is not cached");
      return { id, text: choices[0].text };
    } finally {
      await engine.dispose();
    }
  }

  test("a path, a file: URL and a split file answer like the embedded model", async () => {
    const folder = join(temporaryFolder("inpage-node-"), "with space # and é");
    mkdirSync(folder);
    const copy = join(folder, "tales.gguf");
    cpSync(TALES, copy);
    const embedded = await answerOf("embedded");
    for (const model of [copy, pathToFileURL(copy), pathToFileURL(copy).href, { url: copy }]) {
      assert.deepEqual(await answerOf(model), embedded, `${model}`);
    }
    const parts = splitGguf("tales", readFileSync(TALES), 2);
    const paths = Object.entries(parts).map(([name, bytes]) => {
      writeFileSync(join(folder, name), bytes);
      return join(folder, name);
    });
    assert.deepEqual(await answerOf(paths[1]), embedded);
    const blob = new Blob([readFileSync(TALES)]);
    assert.equal((await answerOf({ file: blob, id: "x" })).text, embedded.text);
  });

  test("a Hugging Face folder is found by its path or that of one of its files", async () => {
    const { id, text } = await answerOf(QWEN3_FOLDER);
    assert.equal(id, "qwen3-hf");
    for (const model of [join(QWEN3_FOLDER, "config.json"), { folder: `${QWEN3_FOLDER}/` }]) {
      assert.deepEqual(await answerOf(model), { id, text });
    }
  });

  test("adapters are found by their paths, as a file and as a folder", async () => {
    const lora = [{ url: `${ADAPTER}.gguf`, scale: 0.5 }];
    const engine = await createEngine({ model: LLAMA, lora });
    try {
      const inUse = async () => (await engine.info()).lora.map(({ name, scale }) => [name, scale]);
      assert.deepEqual(await inUse(), [["llama", 0.5]]);
      await engine.setLora([{ folder: ADAPTER }]);
      assert.deepEqual(await inUse(), [["llama", 1]]);
      await assert.rejects(engine.setLora([{ url: "none.gguf" }]), /no file .*none\.gguf/);
      await engine.setLora([]);
      assert.deepEqual(await inUse(), []);
    } finally {
      await engine.dispose();
    }
  });

  test("they are inspected in place", async () => {
    const { runs, model } = await inspectModel(LLAMA);
    assert.ok(runs);
    assert.equal(model.architecture, "llama");
    assert.equal((await inspectModel({ folder: QWEN3_FOLDER })).container.kind, "safetensors");
  });

  test("a missing file, a folder without a model and other files are errors that name them", async () => {
    const folder = temporaryFolder("inpage-node-");
    writeFileSync(join(folder, "page.gguf"), "<!doctype html>");
    for (const [model, said] of [
      [join(folder, "none.gguf"), /no file .*none\.gguf/],
      [folder, /config\.json/],
      [join(folder, "page.gguf"), /it starts with "<!do"/],
      ["owner/name", /no file .*owner\/name/],
    ]) {
      await assert.rejects(createEngine({ model }), (error) => {
        assert.ok(error instanceof InpageError, `${error}`);
        assert.match(error.message, said);
        return true;
      });
    }
    const hashed = { url: TALES, sha256: "0".repeat(64) };
    await assert.rejects(createEngine({ model: hashed }), { code: "invalid_option" });
    await assert.rejects(inspectModel(hashed), { name: "InpageError", code: "invalid_option" });
  });
});

describe("options", () => {
  test("what only a browser has is refused", async () => {
    assert.equal(globalThis.navigator?.gpu, undefined, "the test assumes a program without WebGPU");
    await assert.rejects(createEngine({ device: "webgpu" }), { code: "no_webgpu_device" });
    await assert.rejects(createEngine({ shared: true }), /only in a browser/);
    assert.throws(() => serveFromPage(undefined), /npx inpage serve/);
    await assert.rejects(servedFetch("http://localhost/v1/models"), /engine\.fetch/);
  });

  test("WebGPU that the engine's thread does not have is an error, not a panic", async () => {
    const { navigator } = globalThis;
    const define = (value) =>
      Object.defineProperty(globalThis, "navigator", { value, configurable: true, writable: true });
    define({ gpu: {} });
    try {
      await assert.rejects(createEngine({ device: "webgpu" }), { code: "no_webgpu_device" });
    } finally {
      define(navigator);
    }
  });

  test("an unknown switch is an error, and a signal aborts the load", async () => {
    await assert.rejects(createEngine({ endpoint: { maxM: 1 } }), {
      code: "invalid_option",
      message: /maxM.*use endpoint\.maxN/,
    });
    await assert.rejects(createEngine({ endpoint: { maxN: -1 } }), { code: "invalid_option" });
    const controller = new AbortController();
    const reason = new DOMException("enough", "AbortError");
    const loading = createEngine({ signal: controller.signal });
    controller.abort(reason);
    await assert.rejects(loading, { name: "AbortError" });
  });

  test("getEngine gives equal options one engine, on the CPU, until it is disposed", async () => {
    const engine = await getEngine({ endpoint: { maxQueue: 3 } });
    try {
      assert.equal(await getEngine({ endpoint: { maxQueue: 3 } }), engine);
      assert.equal((await engine.info()).device, "cpu");
    } finally {
      await engine.dispose();
    }
    const next = await getEngine({ endpoint: { maxQueue: 3 }, background: true });
    await next.dispose();
    assert.notEqual(next, engine);
  });

  test("in the background, requests wait for the model unless they are not supposed to", async () => {
    for (const whenModelNotReady of [undefined, "error"]) {
      const engine = await createEngine({
        background: true,
        persist: true,
        endpoint: { whenModelNotReady },
      });
      try {
        const early = await engine.fetch("http://localhost/v1/completions", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(greedy),
        });
        if (whenModelNotReady === undefined) {
          assert.equal((await early.json()).usage.completion_tokens, 16);
          continue;
        }
        assert.equal(early.status, 503);
        assert.equal(early.headers.get("retry-after"), "5");
        assert.equal((await early.json()).error.code, "model_loading");
        await engine.ready;
        assert.equal((await engine.completions.create(greedy)).usage.completion_tokens, 16);
      } finally {
        await engine.dispose();
      }
    }
  });
});

describe("a program of its own", () => {
  for (const [name, args] of [
    ["node", [PORTABLE]],
    ["deno", ["run", "--allow-all", PORTABLE]],
    ["bun", [PORTABLE]],
  ]) {
    const program = name === "node" ? process.execPath : which(name);
    const skip = program === undefined && `skipped: ${name} is not on PATH`;
    test(`in ${name} it answers, and ends once the engine is disposed`, { skip }, async () => {
      const { error, stdout, stderr } = await new Promise((resolve) => {
        const options = { timeout: 60_000 };
        execFile(program, args, options, (error, stdout, stderr) =>
          resolve({ error, stdout, stderr }),
        );
      });
      assert.equal(error, null, stderr);
      assert.match(stdout, /^the last line is reached$/m);
    });
  }
});
