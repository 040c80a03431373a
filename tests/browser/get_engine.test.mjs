//! `getEngine`: which calls get the same engine, and when another one is created. Engines are fakes; no browser is needed.

import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { engineGetter } = await load("engine/get_engine.js");
const { optionsKey } = await load("options/options_key.js");

/** A `getEngine` over fake engines, which are listed in `created`. The loads of the first `failures` fail. */
function fakes({ failures = 0 } = {}) {
  const created = [];
  const get = engineGetter(async (options) => {
    const end = Promise.withResolvers ? Promise.withResolvers() : withResolvers();
    const controller = new AbortController();
    const attempt = () => (failures-- > 0 ? Promise.reject(new Error("load failed")) : end.promise);
    const engine = {
      options,
      ready: attempt(),
      finish: end.resolve,
      disposed: controller.signal,
      reloads: 0,
      async reload() {
        engine.reloads += 1;
        await attempt();
      },
      async dispose() {
        controller.abort();
      },
    };
    engine.ready.catch(() => {});
    created.push(engine);
    return engine;
  });
  return { get, created };
}

function withResolvers() {
  let resolve;
  const promise = new Promise((onResolve) => {
    resolve = onResolve;
  });
  return { promise, resolve };
}

/** The microtasks that are waiting, and those they start. */
const settled = () => new Promise((resolve) => setTimeout(resolve));

test("equal options get one engine, before and after its load", async () => {
  const { get, created } = fakes();
  const options = () => ({ model: "https://a.example/x.gguf", load: { contextTokens: 64 } });
  const [first, second] = [get(options()), get({ ...options(), onProgress() {} })];
  await settled();
  assert.equal(created.length, 1);
  created[0].finish();
  assert.equal(await first, await second);
  assert.equal(await get(options()), await first);
  assert.equal(created.length, 1);
});

test("other options get another engine", async () => {
  const { get, created } = fakes();
  const url = "https://a.example/x.gguf";
  for (const options of [
    {},
    { model: url },
    { model: url, endpoint: { maxQueue: 4 } },
    { model: `${url}?2` },
  ]) {
    await get({ ...options, background: true });
  }
  assert.equal(created.length, 4);
});

test("a call waits for the load unless it says background", async () => {
  const { get, created } = fakes();
  let isReady = false;
  const whole = get().then(() => {
    isReady = true;
  });
  assert.equal(await get({ background: true }), created[0]);
  await settled();
  assert.equal(isReady, false);
  created[0].finish();
  await whole;
});

test("a signal ends the wait of its caller only", async () => {
  const { get, created } = fakes();
  const controller = new AbortController();
  const seen = [];
  const left = get({ signal: controller.signal, onProgress: () => seen.push("left") });
  const other = get({ onProgress: () => seen.push("other") });
  await settled();
  assert.equal(created[0].options.signal, undefined);
  controller.abort();
  await assert.rejects(left, { name: "AbortError" });
  await assert.rejects(get({ signal: controller.signal }), { name: "AbortError" });
  created[0].options.onProgress({ phase: "load", loadedBytes: 1, totalBytes: 2 });
  created[0].finish();
  assert.equal(await other, created[0]);
  assert.equal(created[0].disposed.aborted, false);
  assert.deepEqual(seen, ["other"]);
});

test("a later caller hears of the progress so far", async () => {
  const { get, created } = fakes();
  await get({ background: true });
  const progress = { phase: "download", loadedBytes: 5, totalBytes: 9 };
  created[0].options.onProgress(progress);
  const seen = [];
  await get({ background: true, onProgress: (it) => seen.push(it) });
  assert.deepEqual(seen, [progress]);
});

test("after dispose, the next call creates an engine", async () => {
  const { get, created } = fakes();
  const engine = await get({ background: true });
  await engine.dispose();
  assert.notEqual(await get({ background: true }), engine);
  assert.equal(created.length, 2);
});

test("a load that failed is not kept, and all who wait for it hear of it", async () => {
  const { get, created } = fakes({ failures: 1 });
  const waiting = [get(), get()];
  for (const promise of waiting) await assert.rejects(promise, /load failed/);
  await settled();
  assert.equal(created[0].disposed.aborted, true);
  const again = get();
  await settled();
  created[1].finish();
  assert.equal(await again, created[1]);
});

test("an engine that somebody has is kept when its load fails, and the next call that waits tries again", async () => {
  const { get, created } = fakes({ failures: 2 });
  const engine = await get({ background: true });
  await settled();
  assert.equal(engine.disposed.aborted, false);
  assert.equal(await get({ background: true }), engine);
  await assert.rejects(get(), /load failed/);
  const again = get();
  engine.finish();
  assert.equal(await again, engine);
  assert.equal(engine.reloads, 2);
  assert.equal(created.length, 1);
});

test("with an upstream that replaces a failed engine, a load that fails is no error", async () => {
  const { get, created } = fakes({ failures: 1 });
  assert.equal(await get({ upstream: { baseURL: "https://llm.example/v1" } }), created[0]);
  assert.equal(created[0].disposed.aborted, false);
});

test("options that cannot be used are not kept", async () => {
  let calls = 0;
  const get = engineGetter(async () => {
    calls += 1;
    throw new TypeError("no such option");
  });
  await assert.rejects(get(), /no such option/);
  await assert.rejects(get(), /no such option/);
  assert.equal(calls, 2);
});

test("which options are equal", () => {
  const [file, onProgress, when] = [new Blob(["x"]), () => {}, () => true];
  const equal = [
    [{}, { model: undefined, onProgress, signal: AbortSignal.abort(), background: true }],
    [
      { a: 1, load: { b: 2, c: 3 } },
      { load: { c: 3, b: 2 }, a: 1 },
    ],
    [{ model: new URL("https://a.example/x") }, { model: "https://a.example/x" }],
    [{ model: { file } }, { model: { file } }],
    [{ upstream: { when } }, { upstream: { when } }],
    [{ fetch: new Headers([["x", "1"]]) }, { fetch: new Headers([["x", "1"]]) }],
    [{ lora: [{ url: "a" }] }, { lora: [{ url: "a" }] }],
  ];
  for (const [a, b] of equal) assert.equal(optionsKey(a), optionsKey(b));
  const different = [
    [{ model: file }, { model: new Blob(["x"]) }],
    [{ upstream: { when } }, { upstream: { when: () => true } }],
    [{ fetch: new Headers([["x", "1"]]) }, { fetch: new Headers([["x", "2"]]) }],
    [{ lora: ["a", "b"] }, { lora: ["b", "a"] }],
    [{ a: "1" }, { a: 1 }],
    [{ a: "null" }, { a: null }],
    [{ models: { a: "x" } }, { models: { b: "x" } }],
  ];
  for (const [a, b] of different) assert.notEqual(optionsKey(a), optionsKey(b));
});
