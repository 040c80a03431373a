//! `inpage/react` in Chromium, with the fake engine and React in StrictMode.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { build } from "esbuild";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { startHarness } from "../browser/harness.mjs";
import { installBundlers } from "./bundlers.mjs";

const skip = !(await installBundlers()) && "skipped: React cannot be installed";

/** Components that show their state as text, and how often they were given an engine. */
const APP = `
import { StrictMode, createElement as h, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { renderToString } from "react-dom/server.browser";
import { useChat, useCompletion, useEngine, useModels } from "inpage/react";

const model = { file: new Blob(["abc"]), id: "fake" };
const options = (more) => ({ workerUrl: "/fixtures/fake_worker.mjs", model, shared: false, ...more });

function Writer() {
  const { completion, complete, stop, isLoading, error } = useCompletion({
    engine: options(),
    body: { model: "fake", temperature: 0 },
    onFinish: (text) => { window.finished.push(text); },
  });
  // Not before the effects of StrictMode, which unmounts once.
  useEffect(() => void Object.assign(window, { complete, stop }));
  return h("p", { id: "writer" }, JSON.stringify({ completion, isLoading, error: error?.message }));
}

function Talker({ calls }) {
  const { messages, send, regenerate, stop, setMessages, isLoading, error } = useChat({
    engine: options({ endpoint: { chatTemplate: "fake" } }),
    body: { model: "fake" },
    initialMessages: [{ role: "system", content: "Be brief." }],
    onFinish: ({ content }) => { window.finished.push(content); },
    ...(calls && { onToolCall: calls }),
  });
  useEffect(() => void Object.assign(window, { send, regenerate, stopTalk: stop, setMessages }));
  return h("p", { id: "talker" }, JSON.stringify({ messages, isLoading, error: error?.message }));
}

// Each is loaded by its first request.
const two = {
  model: undefined,
  models: { a: { file: new Blob(["a"]) }, b: { file: new Blob(["b"]) } },
  endpoint: { fakeCapabilities: { b: ["embeddings"] } },
};

function Lister({ more }) {
  const models = useModels(options(more));
  const { engine } = useEngine(options(more));
  if (engine) window.engines.add(engine);
  return h("p", { id: "lister" }, JSON.stringify(models.map(({ id, status, capabilities }) => ({ id, status, capabilities }))));
}

function Loader({ model }) {
  const { engine, progress, error } = useEngine(options(model && { model }));
  if (engine) window.engines.add(engine);
  return h("p", { id: "loader" }, JSON.stringify({ isReady: engine !== undefined, phase: progress?.phase, error: error?.message }));
}

Object.assign(window, {
  finished: [],
  engines: new Set(),
  root: createRoot(document.getElementById("root")),
  show: (...children) => window.root.render(h(StrictMode, null, ...children)),
  writer: () => h(Writer, { key: "writer" }),
  two,
  lister: (more) => h(Lister, { key: "lister", more }),
  talker: (calls) => h(Talker, { key: "talker", calls }),
  loader: (model) => h(Loader, { key: "loader", model }),
  renderOnServer: () => renderToString(h(Writer)),
  loaded: true,
});`;

describe("hooks of React", { skip }, () => {
  let harness;
  let page;
  before(async () => {
    const folder = temporaryFolder("inpage-react-");
    await build({
      stdin: { contents: APP, resolveDir: join(root, "tests/package/bundlers") },
      bundle: true,
      format: "esm",
      // As from npm; React is the app's.
      alias: { "inpage/react": join(root, "www/dist/react/index.js") },
      nodePaths: [join(root, "tests/package/bundlers/node_modules")],
      outfile: join(folder, "app.js"),
      logLevel: "error",
    });
    const html =
      '<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/app.js"></script>';
    writeFileSync(join(folder, "index.html"), html);
    harness = await startHarness({
      mounts: { "/app.js": join(folder, "app.js"), "/app/": `${folder}/` },
    });
  });
  after(() => harness?.close());
  beforeEach(async () => {
    page = await harness.open(undefined, "/app/");
    await page.waitForFunction(() => window.loaded);
  });
  afterEach(() => page.context().close());

  const showWriter = async () => {
    await page.evaluate(() => show(writer(), loader()));
    await page.waitForFunction(() => window.complete);
  };
  const shown = (id) =>
    page.evaluate((id) => JSON.parse(document.getElementById(id)?.textContent ?? "null"), id);
  const until = (id, condition) =>
    page.waitForFunction(
      ([id, condition]) => {
        const text = document.getElementById(id)?.textContent;
        return text && new Function("state", `return ${condition}`)(JSON.parse(text));
      },
      [id, condition],
      { timeout: 20_000 },
    );

  test("a component streams a completion, before its model is loaded, and shares the engine", async () => {
    await showWriter();
    const text = await page.evaluate(() => complete("count:3"));
    assert.equal(text, "é0 é1 é2 ");
    await until("writer", "!state.isLoading");
    assert.deepEqual(await shown("writer"), { completion: text, isLoading: false });
    await until("loader", "state.isReady");
    assert.equal((await shown("loader")).phase, "ready");
    assert.deepEqual(await page.evaluate(() => finished), [text]);
    // StrictMode mounts components twice; one worker answers all.
    const workers = page.workers().length;
    assert.deepEqual([workers, await page.evaluate(() => engines.size)], [1, 1]);
  });

  test("stop ends the generation and keeps the text; a new completion replaces an old one", async () => {
    await page.evaluate(() => show(writer(), loader()));
    await until("loader", "state.isReady");
    await page.evaluate(
      () => Object.assign(window, { first: complete("count:2000:5") }) && undefined,
    );
    await until("writer", "state.completion.length > 0");
    await page.evaluate(() => stop());
    assert.equal(await page.evaluate(() => window.first), undefined);
    const { completion, ...rest } = await shown("writer");
    assert.match(completion, /^é0 /);
    assert.deepEqual(rest, { isLoading: false });
    const [old, text] = await page.evaluate(() =>
      Promise.all([complete("count:2000:5"), complete("count:2")]),
    );
    assert.deepEqual([old, text], [undefined, "é0 é1 "]);
    await until("writer", "!state.isLoading");
    assert.equal((await shown("writer")).completion, text);
    await page.waitForFunction(async () => (await [...engines][0].info()).active === 0);
  });

  test("an unmounted component stops its generation; the engine stays for the next one", async () => {
    await page.evaluate(() => show(writer(), loader()));
    await until("loader", "state.isReady");
    await page.evaluate(
      () => Object.assign(window, { first: complete("count:2000:5") }) && undefined,
    );
    await until("writer", "state.completion.length > 0");
    await page.evaluate(() => show());
    assert.equal(await page.evaluate(() => window.first), undefined);
    await page.waitForFunction(async () => (await [...engines][0].info()).active === 0);
    await page.evaluate(() => show(writer(), loader()));
    await until("loader", "state.isReady");
    assert.equal(await page.evaluate(() => engines.size), 1);
    assert.equal(page.workers().length, 1);
  });

  test("errors are shown: of a request, and of a load until the options change", async () => {
    await showWriter();
    assert.equal(await page.evaluate(() => complete("count:2", { model: "absent" })), undefined);
    await until("writer", "state.error !== undefined && !state.isLoading");
    assert.match((await shown("writer")).error, /no such model/);
    await page.evaluate(() => show(loader({ url: "/none.gguf" })));
    await until("loader", "state.error !== undefined");
    assert.match((await shown("loader")).error, /404/);
    await page.evaluate(() => show(loader()));
    await until("loader", "state.isReady");
    assert.equal((await shown("loader")).error, undefined);
  });

  const showTalker = async () => {
    await page.evaluate(() => show(talker()));
    await page.waitForFunction(() => window.send);
  };
  const system = { role: "system", content: "Be brief." };

  test("a conversation grows by messages and answers, and the last answer can be made again", async () => {
    await showTalker();
    const first = await page.evaluate(() => send("count:2"));
    assert.deepEqual(first, { role: "assistant", content: "é0 é1 " });
    await page.evaluate(() => send("count:1"));
    await until("talker", "!state.isLoading");
    const conversation = [
      system,
      { role: "user", content: "count:2" },
      { role: "assistant", content: "é0 é1 " },
      { role: "user", content: "count:1" },
      { role: "assistant", content: "é0 " },
    ];
    assert.deepEqual((await shown("talker")).messages, conversation);
    assert.deepEqual(await page.evaluate(() => regenerate()), conversation.at(-1));
    await until("talker", "!state.isLoading");
    assert.deepEqual((await shown("talker")).messages, conversation);
    assert.deepEqual(await page.evaluate(() => finished), ["é0 é1 ", "é0 ", "é0 "]);
    await page.evaluate(() => setMessages([]));
    await until("talker", "state.messages.length === 0");
    assert.equal(page.workers().length, 1);
  });

  test("stop ends an answer and keeps its text, and errors are shown", async () => {
    await showTalker();
    await page.evaluate(() => Object.assign(window, { first: send("count:2000:5") }) && undefined);
    await until("talker", "(state.messages[2]?.content ?? '').length > 3");
    await page.evaluate(() => stopTalk());
    assert.equal(await page.evaluate(() => window.first), undefined);
    const { messages, isLoading } = await shown("talker");
    assert.match(messages[2].content, /^é0 /);
    assert.equal(isLoading, false);
    assert.equal(await page.evaluate(() => send("count:1", { model: "absent" })), undefined);
    await until("talker", "state.error !== undefined && !state.isLoading");
    assert.match((await shown("talker")).error, /no such model/);
    assert.equal((await shown("talker")).messages.at(-1).role, "user");
  });

  test("the models of an engine are listed with their states", async () => {
    await page.evaluate(() => show(lister()));
    await until("lister", "state.length > 0");
    const fake = { id: "fake", status: "ready", capabilities: ["completions"] };
    assert.deepEqual(await shown("lister"), [fake]);
  });

  test("the list follows the states of the models", async () => {
    await page.evaluate(() => show(lister(two)));
    await until("lister", "state.length === 2");
    await page.evaluate(() =>
      [...engines][0].completions.create({ model: "a", prompt: "count:1" }),
    );
    await until("lister", "state[0].status === 'ready'");
    const a = { id: "a", status: "ready", capabilities: ["completions"] };
    assert.deepEqual(await shown("lister"), [a, { id: "b", status: "unloaded" }]);
    await page.evaluate(() => [...engines][0].embeddings.create({ model: "b", input: "x" }));
    await until("lister", "state[1].status === 'ready'");
    const b = { id: "b", status: "ready", capabilities: ["embeddings"] };
    assert.deepEqual(await shown("lister"), [a, b]);
    assert.equal(page.workers().length, 2);
  });

  test("an older list that arrives late does not replace a newer one", async () => {
    await page.evaluate(() => show(lister()));
    await until("lister", "state.length > 0");
    await page.evaluate(() => {
      const [engine] = engines;
      const answers = [Promise.withResolvers(), Promise.withResolvers()];
      let asked = 0;
      engine.fetch = () => answers[asked++].promise;
      for (const _ of answers) engine.dispatchEvent(new Event("statechange"));
      const arrive = (at, id) =>
        answers[at].resolve(Response.json({ data: [{ id, status: "ready" }] }));
      arrive(1, "newer");
      window.arriveLate = () => arrive(0, "older");
    });
    await until("lister", "state[0].id === 'newer'");
    await page.evaluate(async () => {
      arriveLate();
      await new Promise((resolve) => setTimeout(resolve, 100));
    });
    assert.equal((await shown("lister"))[0].id, "newer");
  });

  test("nothing is started while a page is rendered on a server", async () => {
    const html = await page.evaluate(() => renderOnServer());
    assert.match(html, /completion/);
    assert.equal(page.workers().length, 0);
  });
});
