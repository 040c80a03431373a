//! The reading of a model's bytes: files, range requests, the cache and resumed downloads. The fake engine reads all of
//! the source, in small and large pieces, and reports the digest.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "./harness.mjs";
import { modelBytes, startModelServer } from "./model_server.mjs";

const MIB = 1 << 20;
const SIZE = 21 * MIB + 12345;
const FIRST = modelBytes(SIZE, 1);
const SECOND = modelBytes(SIZE, 2);
/** A small model, for tests of which files are read, not of how they are read. */
const SMALL = modelBytes(MIB, 3);
const digestOf = (bytes) =>
  [...createHash("sha256").update(bytes).digest()].map((b) => b.toString(16)).join(",");

let harness;
let page;
let server;
let state;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  page = await harness.open();
  state = { bytes: FIRST, etag: '"one"' };
  server = await startModelServer(state);
});
afterEach(async () => {
  await page.context().close();
  await server.close();
});

/** Loads the URL. Returns the digest of what the engine read, or the error, and all progress. */
const load = (options = {}, tab = page) =>
  tab.evaluate(
    async ({ url, cache, ...options }) => {
      const progress = [];
      const result = await caught(async () => {
        const engine = await startFake({
          model: { url, ...(cache === undefined ? {} : { cache }) },
          onProgress: (event) => progress.push(event),
          ...options,
        });
        const info = await engine.info();
        const { data } = await (await engine.fetch("/v1/models")).json();
        await engine.dispose();
        return { digest: info.sourceDigest, id: data[0].id };
      });
      return { ...result, ...result.value, progress };
    },
    { url: server.url, ...options },
  );

/** After this, the next response breaks off, and later requests are refused. */
const breakOff = (cutAfter) => Object.assign(state, { cutAfter, statusAfterCut: 403 });
const mend = () => {
  for (const name of ["cutAfter", "statusAfterCut", "status"]) delete state[name];
};

describe("a URL", () => {
  test("is downloaded once, with progress, and named by its file", async () => {
    const first = await load();
    assert.equal(first.digest, digestOf(FIRST), first.message);
    assert.equal(first.id, "test model");
    const phases = [...new Set(first.progress.map(({ phase }) => phase))];
    assert.deepEqual(phases, ["download", "load", "ready"]);
    for (const phase of ["download", "load"]) {
      const last = first.progress.filter((event) => event.phase === phase).at(-1);
      assert.deepEqual([last.loadedBytes, last.totalBytes], [SIZE, SIZE]);
    }
    // A request for the bytes would never end.
    state.stallAfter = MIB;
    const second = await load();
    assert.equal(second.digest, digestOf(FIRST));
    assert.ok(!second.progress.some(({ phase }) => phase === "download"), "downloaded again");
  });

  test("is downloaded while the module of the engine arrives", async () => {
    const loaded = page.evaluate(async (url) => {
      let release;
      const released = new Promise((resolve) => {
        release = resolve;
      });
      await new Promise((resolve) => {
        void navigator.locks.request("start", () => {
          resolve();
          return released;
        });
      });
      const phases = new Set();
      const engine = await startFake({
        ...{ model: { url }, fakeStartLock: "start" },
        onProgress({ phase, loadedBytes, totalBytes }) {
          phases.add(phase);
          if (phase === "download" && loadedBytes === totalBytes) release();
        },
      });
      const info = await engine.info();
      return { digest: info.sourceDigest, phases: [...phases] };
    }, server.url);
    const expected = { digest: digestOf(FIRST), phases: ["download", "load", "ready"] };
    assert.deepEqual(await loaded, expected);
  });

  test("works offline after the first visit", async () => {
    await load();
    await server.close();
    const { digest, message } = await load();
    assert.equal(digest, digestOf(FIRST), message);
  });

  test("stays cached when the server has deleted it", async () => {
    await load();
    state.status = 404;
    assert.equal((await load()).digest, digestOf(FIRST));
  });

  test("does not wait long for a network that does not answer", async () => {
    const first = await load();
    assert.equal(first.digest, digestOf(FIRST), first.message);
    state.stallAfter = 0;
    state.hideLength = true;
    const start = performance.now();
    const second = await load();
    assert.equal(second.digest, digestOf(FIRST), JSON.stringify(second));
    assert.ok(performance.now() - start < 9000);
  });

  test("is downloaded again when the server has another version", async () => {
    await load();
    Object.assign(state, { bytes: SECOND, etag: '"two"' });
    assert.equal((await load()).digest, digestOf(SECOND));
    assert.equal((await load()).digest, digestOf(SECOND));
  });

  test("resumes an interrupted download", async () => {
    breakOff(9 * MIB);
    const broken = await load();
    assert.equal(broken.digest, undefined);
    assert.ok(broken.code, "an InpageError");
    mend();
    state.requests.length = 0;
    const whole = await load();
    assert.equal(whole.digest, digestOf(FIRST), whole.message);
    assert.equal(state.requests.length, 1);
    const from = Number(/^bytes=(\d+)-$/.exec(state.requests[0])[1]);
    assert.ok(from >= 4 * MIB && from <= 9 * MIB, state.requests[0]);
  });

  test("does not combine halves of two versions", async () => {
    breakOff(9 * MIB);
    await load();
    mend();
    Object.assign(state, { bytes: SECOND, etag: '"two"' });
    assert.equal((await load()).digest, digestOf(SECOND));
  });

  test("does not combine halves that may be of two versions", async () => {
    delete state.etag;
    breakOff(9 * MIB);
    await load();
    mend();
    state.bytes = SECOND;
    assert.equal((await load()).digest, digestOf(SECOND));
  });

  test("resumes by Last-Modified", async () => {
    delete state.etag;
    state.lastModified = "Sat, 21 Nov 2026 00:00:00 GMT";
    breakOff(9 * MIB);
    await load();
    mend();
    state.requests.length = 0;
    assert.equal((await load()).digest, digestOf(FIRST));
    assert.notEqual(state.requests[0], "bytes=0-");
  });

  test("works from servers without ranges and without a length", async () => {
    Object.assign(state, { ranges: false, hideLength: true });
    const { digest, progress } = await load();
    assert.equal(digest, digestOf(FIRST));
    assert.equal(progress[0].totalBytes, undefined);
    assert.equal((await load()).digest, digestOf(FIRST));
  });

  test("works from another origin that hides its headers", async () => {
    state.exposeHeaders = false;
    assert.equal((await load()).digest, digestOf(FIRST));
  });

  test("is read by ranges, in few large pieces, when caching is off", async () => {
    assert.equal((await load({ cache: false })).digest, digestOf(FIRST));
    const lengths = state.requests.slice(1).map((range) => {
      const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(range);
      return end - start + 1;
    });
    assert.ok(lengths.length >= 2 && lengths.length <= 8, state.requests.join(" "));
  });

  test("is kept as a Blob when it can neither be cached nor read by ranges", async () => {
    state.ranges = false;
    assert.equal((await load({ cache: false })).digest, digestOf(FIRST));
    assert.equal(state.requests.length, 1);
  });

  const inFullStorage = { workerUrl: "/fixtures/full_storage_worker.mjs" };

  test("is kept in memory after the storage is full, and sent once", async () => {
    const { digest, message } = await load(inFullStorage);
    assert.equal(digest, digestOf(FIRST), message);
    assert.equal(state.requests.length, 1);
    assert.equal(state.sentBytes, SIZE);
  });

  test("an error status is reported with the URL", async () => {
    state.status = 403;
    const { code, message } = await load();
    assert.equal(code, "model_not_loaded");
    assert.match(message, /test%20model\.gguf.* answered 403/);
  });

  test("two tabs share one download", async () => {
    const second = await harness.open(page.context());
    const results = await Promise.all([load({}, page), load({}, second)]);
    for (const { digest } of results) assert.equal(digest, digestOf(FIRST));
    assert.equal(results.filter(({ progress }) => progress[0].phase === "download").length, 1);
  });

  test("an abort during the download rejects with AbortError, and the next load resumes", async () => {
    state.stallAfter = 16 * MIB;
    const result = await page.evaluate(
      (url) =>
        caught(() => {
          const controller = new AbortController();
          return startFake({
            model: url,
            signal: controller.signal,
            onProgress: ({ loadedBytes }) => {
              if (loadedBytes >= 8 << 20) controller.abort();
            },
          });
        }),
      server.url,
    );
    assert.equal(result.name, "AbortError");
    delete state.stallAfter;
    state.requests.length = 0;
    assert.equal((await load()).digest, digestOf(FIRST));
    assert.notEqual(state.requests[0], "bytes=0-");
  });
});

describe("a local file", () => {
  const loadFile = (name) =>
    page.evaluate(async (name) => {
      const bytes = new Uint8Array(9_000_001).map((_, i) => i % 251);
      const file = name ? new File([bytes], name) : new Blob([bytes]);
      const engine = await startFake({ model: file });
      const digest = await crypto.subtle.digest("SHA-256", bytes);
      const expected = Array.from(new Uint8Array(digest), (b) => b.toString(16)).join(",");
      const { data } = await (await engine.fetch("/v1/models")).json();
      return { same: (await engine.info()).sourceDigest === expected, id: data[0].id };
    }, name);

  test("is read in slices and named by its file name", async () => {
    assert.deepEqual(await loadFile("My Model.Q8_0.gguf"), { same: true, id: "My Model.Q8_0" });
  });

  test("a Blob has a default name", async () => {
    assert.deepEqual(await loadFile(undefined), { same: true, id: "local" });
  });
});

describe("a model of several files", () => {
  const PARTS = ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"];
  const CONFIG = modelBytes(12_345, 4);
  const WHOLE = digestOf(Buffer.concat([CONFIG, SMALL]));
  const at = (path) => new URL(path, server.url).href;

  /** Like `load`, for any model. */
  const loadModel = (model) =>
    page.evaluate(async (model) => {
      const result = await caught(async () => {
        const engine = await startFake({ model });
        const { sourceDigest } = await engine.info();
        const { data } = await (await engine.fetch("/v1/models")).json();
        await engine.dispose();
        return { digest: sourceDigest, id: data[0].id };
      });
      return { ...result, ...result.value };
    }, model);

  test("is downloaded from the folder of its first part, and resumed part by part", async () => {
    const whole = digestOf(Buffer.concat([FIRST, SECOND]));
    state.files = { [PARTS[0]]: FIRST, [PARTS[1]]: SECOND };
    breakOff(9 * MIB);
    assert.ok((await loadModel(at(PARTS[0]))).code, "an InpageError");
    mend();
    state.requests.length = 0;
    const { digest, id, message } = await loadModel(at(PARTS[0]));
    assert.equal(digest, whole, message);
    assert.equal(id, "big");
    assert.notEqual(state.requests[0], "bytes=0-");
    await server.close();
    assert.equal((await loadModel(at(PARTS[0]))).digest, whole);
  });

  test("names a part that the server does not have", async () => {
    state.files = { [PARTS[0]]: CONFIG };
    const { message } = await loadModel(at(PARTS[0]));
    assert.equal(message, `${PARTS[1]} is missing`);
  });

  test("is read from a folder, with or without a slash at its end", async () => {
    state.files = { "config.json": CONFIG, "model.safetensors": SMALL };
    for (const path of ["/org/name/resolve/main", "/org/name/resolve/main/"]) {
      const { digest, id, message } = await loadModel({ folder: at(path) });
      assert.equal(digest, WHOLE, message);
      assert.equal(id, "name");
    }
    state.files = { "model.safetensors": SMALL };
    const { message } = await loadModel({ folder: at("/org/other") });
    assert.match(message, /other\/config\.json.* answered 404/);
  });

  test("can be named by any part", async () => {
    state.files = { [PARTS[0]]: CONFIG, [PARTS[1]]: SMALL };
    const { digest, id, message } = await loadModel(at(PARTS[1]));
    assert.equal(digest, WHOLE, message);
    assert.equal(id, "big");
  });

  test("is read offline from a folder without optional files", async () => {
    state.files = { "config.json": CONFIG, "model.safetensors": SMALL };
    const folder = { folder: at("/org/name/") };
    assert.equal((await loadModel(folder)).digest, WHOLE);
    await server.close();
    const { digest, message } = await loadModel(folder);
    assert.equal(digest, WHOLE, message);
  });

  test("reports offline which file was missing", async () => {
    state.files = { "model.safetensors": SMALL };
    const folder = { folder: at("/org/name/") };
    for (let visit = 0; visit < 2; visit++) {
      assert.match((await loadModel(folder)).message, /name\/config\.json answered 404/);
    }
    await server.close();
    assert.match((await loadModel(folder)).message, /was not on the server at the last request/);
    assert.match((await loadModel({ folder: at("/org/other/") })).message, /fetch/);
  });

  test("includes files that the server has added since", async () => {
    state.files = { "config.json": CONFIG, "model.safetensors": SMALL };
    const folder = { folder: at("/org/name/") };
    assert.equal((await loadModel(folder)).digest, WHOLE);
    const added = Buffer.from("{}");
    state.files["generation_config.json"] = added;
    const more = digestOf(Buffer.concat([CONFIG, added, SMALL]));
    assert.equal((await loadModel(folder)).digest, more);
    await server.close();
    assert.equal((await loadModel(folder)).digest, more);
  });

  test("requests each file once, whether it exists or not", async () => {
    state.files = { "config.json": CONFIG, "model.safetensors": SMALL };
    const folder = { folder: at("/org/name/") };
    assert.equal((await loadModel(folder)).digest, WHOLE);
    state.requests.length = 0;
    assert.equal((await loadModel(folder)).digest, WHOLE);
    assert.equal(state.requests.length, 4);
  });

  test("is read from the files that a user picked", async () => {
    const picked = (names) =>
      page.evaluate(async (names) => {
        const contents = names.map((_, i) => new Uint8Array(9_001).fill(i + 1));
        const files = names.map((name, i) => new File([contents[i]], name));
        // The order does not matter.
        const engine = await startFake({ model: { files: files.reverse() } });
        const whole = await new Blob(contents).arrayBuffer();
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
        const expected = Array.from(digest, (b) => b.toString(16)).join(",");
        const { data } = await (await engine.fetch("/v1/models")).json();
        return { same: (await engine.info()).sourceDigest === expected, id: data[0].id };
      }, names);
    assert.deepEqual(await picked(PARTS), { same: true, id: "big" });
    const folder = ["config.json", "model.safetensors"];
    assert.deepEqual(await picked(folder), { same: true, id: "local" });
  });
});
