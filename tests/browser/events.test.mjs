//! The states of an engine and its events: of its load, of losses, of several models, and of an engine that another tab runs. A
//! fake engine runs behind the real worker host.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { heldServer, startHarness } from "./harness.mjs";

let harness;
let page;
before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  page = await harness.open();
  await observe(page);
});
afterEach(() => page.context().close());

/** Gives a page `watch(engine)`, which notes its events and states. */
const observe = (tab) =>
  tab.evaluate(() => {
    window.seen = [];
    window.watch = (engine) => {
      window.engine = engine;
      seen.push(engine.state);
      engine.addEventListener("statechange", ({ state, model }) => {
        seen.push(model === undefined ? state : `${model} ${state}`);
        if (model === undefined && engine.state !== state) seen.push(`not ${engine.state}`);
      });
      engine.addEventListener("lost", ({ error, model }) => {
        seen.push(`lost ${error.name} ${error.code} ${model ?? ""}`.trim());
      });
      return engine;
    };
    window.ask = (prompt) => engine.completions.create({ model: "default", prompt });
  });

test("a load is observed, and its progress by listeners that were added after creation", async () => {
  const result = await page.evaluate(async () => {
    const calls = [];
    const onProgress = ({ phase }) => calls.push(phase);
    watch(await startFake({ background: true, fakeLoadMs: 100, onProgress }));
    const phases = [];
    engine.addEventListener("progress", ({ progress }) => phases.push(progress.phase));
    await engine.ready;
    await until(() => engine.state === "ready", "it is ready");
    await engine.dispose();
    return { seen, phases, last: [calls.at(-1), phases.at(-1)], state: engine.state };
  });
  assert.deepEqual(result.seen, ["loading", "ready", "disposed"]);
  assert.deepEqual(result.last, ["ready", "ready"]);
  assert.equal(result.state, "disposed");
});

test("`ready` is the last progress, although bytes that the engine does not wait for arrive later", async (t) => {
  const { origin, asked } = await heldServer(t);
  // The fake engine opens the projector without reading it.
  await page.evaluate(async (projector) => {
    window.phases = [];
    window.loaded = startFake({ projector, onProgress: ({ phase }) => phases.push(phase) });
  }, `${origin}/mmproj.gguf`);
  const [, response] = await asked;
  response.writeHead(200, {
    "access-control-allow-origin": "*",
    "access-control-expose-headers": "etag",
    etag: '"1"',
    "content-length": 200_000,
  });
  response.write(Buffer.alloc(100_000));
  await page.evaluate(() => loaded);
  response.end(Buffer.alloc(100_000));
  const phases = await page.evaluate(async () => {
    await until(async () => (await inpage.cache.list())[0]?.complete, "the file is stored");
    return phases;
  });
  assert.ok(phases.includes("download"), phases.join());
  assert.equal(phases.at(-1), "ready", phases.join());
});

test("a load that fails is `failed`, and no loss; the next attempt is `loading` again", async () => {
  const result = await page.evaluate(async () => {
    watch(await startFake({ background: true, fakeFailingLoads: [0] }));
    const { code } = await caught(() => engine.ready);
    await until(() => engine.state === "failed", "it has failed");
    await engine.reload();
    await until(() => engine.state === "ready", "it is ready");
    return { code, seen };
  });
  assert.equal(typeof result.code, "string");
  assert.deepEqual(result.seen, ["loading", "failed", "loading", "ready"]);
});

test("a loss is told with its reason, and the next engine", async () => {
  const result = await page.evaluate(async () => {
    watch(await startFake());
    const { choices } = await ask("lose:9:5:1");
    await until(() => engine.state === "ready", "it is ready");
    return { text: choices[0].text, seen };
  });
  assert.match(result.text, /é8/);
  assert.deepEqual(result.seen, [
    "ready",
    "lost InpageError device_lost",
    "failed",
    "loading",
    "ready",
  ]);
});

test("of several models, events name the model", async () => {
  const seen = await page.evaluate(async () => {
    const models = { a: { file: new Blob(["abc"]) }, b: { file: new Blob(["abc"]) } };
    watch(await startFake({ model: undefined, models }));
    const loads = [];
    engine.addEventListener("progress", ({ progress }) => loads.push(progress.model));
    await engine.completions.create({ model: "a", prompt: "count:1" });
    await until(() => seen.includes("a ready"), "a is ready");
    await engine.unloadModel("a");
    await engine.dispose();
    return [...seen, new Set(loads).size, loads[0]];
  });
  assert.deepEqual(seen, ["ready", "a loading", "a ready", "a unloaded", "disposed", 1, "a"]);
});

test("a tab sees what happens to the engine that another one runs", async () => {
  const model = { url: "/models/tales.gguf", id: "fake" };
  const start = (tab) =>
    tab.evaluate(async (model) => {
      watch(await startFake({ model, shared: true }));
      await until(() => engine.state === "ready", "it is ready");
    }, model);
  const other = await harness.open(page.context());
  await observe(other);
  await start(page);
  await start(other);
  const text = await other.evaluate(async () => (await ask("lose:9:5:1")).choices[0].text);
  assert.match(text, /é8/);
  const lost = ["lost InpageError device_lost", "failed", "loading", "ready"];
  const reads = (tab) => tab.evaluate(() => seen.splice(0));
  for (const tab of [page, other]) {
    await tab.evaluate(() => until(() => seen.at(-1) === "ready" && seen.length > 3, "it is over"));
    assert.deepEqual((await reads(tab)).slice(-4), lost);
  }
  await page.close();
  await other.evaluate(() => until(() => seen.at(-1) === "ready", "it runs here"));
  assert.deepEqual(await reads(other), ["lost InpageError engine_unavailable", "loading", "ready"]);
  page = other;
});

describe("errors", () => {
  test("of calls are InpageErrors", async () => {
    const results = await page.evaluate(async () => {
      watch(await startFake());
      const { cache, inspectModel, serveFromPage } = inpage;
      const calls = {
        setLora: () => engine.setLora([{}]),
        loadModel: () => engine.loadModel("a"),
        evict: () => cache.evict({ toBytes: -1 }),
        pin: () => cache.pin({ url: "http://[" }),
        inspect: () => inspectModel({ files: [] }),
        serve: async () => serveFromPage(engine, { origins: ["x"] }),
        read: async () => {
          const body = { model: "fake", prompt: "count:1", stream: true };
          const stream = await engine.completions.create(body);
          for await (const _ of stream);
          for await (const _ of stream);
        },
        disposed: async () => {
          await engine.dispose();
          await engine.reload();
        },
      };
      const failures = {};
      for (const [name, call] of Object.entries(calls)) {
        const { name: kind, code } = await caught(call);
        failures[name] = `${kind} ${code}`;
      }
      return failures;
    });
    const { inspect, disposed, ...invalid } = results;
    assert.match(inspect, /^InpageError /);
    assert.equal(disposed, "InpageError engine_unavailable");
    for (const failure of Object.values(invalid)) {
      assert.equal(failure, "InpageError invalid_option", JSON.stringify(results));
    }
  });
});
