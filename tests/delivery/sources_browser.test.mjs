//! Sources and the cache in a browser: signed URLs, hubs, mirrors, pauses, and the cache's own API. The fake engine reads
//! all of the model and reports its digest.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { startHarness } from "../browser/harness.mjs";
import { modelBytes, startModelServer } from "../browser/model_server.mjs";
import { startHub } from "./hub_server.mjs";

const MIB = 1 << 20;
const FILE = modelBytes(9 * MIB + 12_345, 1);
const SMALL = modelBytes(100_000, 2);
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
  state = { bytes: FILE, etag: '"one"' };
  server = await startModelServer(state);
});
afterEach(async () => {
  await page.context().close();
  await server.close();
});

/** Loads a model. Returns the digest of what the engine read and the kind of storage, or the error. */
const load = (model, options = {}) =>
  page.evaluate(
    async ([model, options]) => {
      const progress = [];
      const result = await caught(async () => {
        const onProgress = (event) => progress.push(event);
        const engine = await startFake({ model, onProgress, ...options });
        const { sourceDigest, storage, storageReason } = await engine.info();
        await engine.dispose();
        return { digest: sourceDigest, storage, storageReason };
      });
      return { ...result, ...result.value, progress };
    },
    [model, options],
  );

/** Calls a method of the cache. Returns its value or throws its error. */
const cache = async (method, ...args) => {
  const { value, message, code } = await page.evaluate(
    ([method, args]) => caught(() => inpage.cache[method](...args)),
    [method, args],
  );
  if (message !== undefined) throw Object.assign(new Error(message), { code });
  return value;
};
const keys = async () => (await cache("list")).map(({ key }) => key);
const at = (path) => new URL(path, server.url).href;

describe("a signed URL", () => {
  test("is stored once, whatever its signature", async () => {
    const signed = (signature) =>
      at(`/m.gguf?v=1&X-Amz-Date=${signature}&X-Amz-Signature=${signature}#x`);
    assert.equal((await load(signed("one"))).digest, digestOf(FILE));
    const { sentBytes } = state;
    const again = await load(signed("two"));
    assert.equal(again.digest, digestOf(FILE), again.message);
    assert.ok(state.sentBytes - sentBytes < MIB, "downloaded again");
    assert.deepEqual(await keys(), [at("/m.gguf?v=1")]);
    await load({ url: at("/m.gguf?v=1&session=7"), ignoreQuery: ["session"] });
    assert.deepEqual(await keys(), [at("/m.gguf?v=1")]);
  });

  test("leaves no secret in the storage", async () => {
    const query = "X-Amz-Signature=SECRET-1&user=SECRET-2&private_token=SECRET-5&api_key=SECRET-6";
    const url = at(`/m.gguf?${query}&key=SECRET-7&jwt=SECRET-8`).replace("//", "//u:SECRET-3@");
    const { digest, message } = await load({
      url,
      ignoreQuery: ["user"],
      fetch: { headers: { "x-key": "SECRET-4" } },
    });
    // Browsers refuse URLs with a password.
    assert.match(message ?? "", /m\.gguf/, digest);
    assert.doesNotMatch(message, /SECRET/);
    const plain = url.replace("u:SECRET-3@", "");
    const fetch = { headers: { "x-key": "SECRET-4" } };
    const loaded = await load({ url: plain, ignoreQuery: ["user"], fetch });
    assert.equal(loaded.digest, digestOf(FILE), loaded.message);
    const stored = await page.evaluate(async () => {
      const texts = [];
      const read = async (folder) => {
        for await (const [name, handle] of folder.entries()) {
          if (handle.kind === "directory") await read(handle);
          else if (!name.endsWith(".data")) texts.push(await (await handle.getFile()).text());
        }
      };
      await read(await navigator.storage.getDirectory());
      return texts.join("\n");
    });
    assert.match(stored, /m\.gguf/);
    assert.doesNotMatch(stored, /SECRET/);
  });
});

test("an entry whose key an earlier release stored with a credential is removed", async () => {
  // The form in which an earlier release stored it.
  const key = at("/m.gguf?private_token=SECRET");
  await page.evaluate(async (key) => {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(key));
    const hex = [...new Uint8Array(digest, 0, 16)].map((b) => b.toString(16).padStart(2, "0"));
    const root = await navigator.storage.getDirectory();
    const all = await root.getDirectoryHandle("inpage-models", { create: true });
    const folder = await all.getDirectoryHandle(hex.join(""), { create: true });
    const note = { key, url: key.split("?")[0], etag: null, lastModified: null, sizeBytes: 4 };
    const rest = { isHashVerified: false, chunkBytes: 4, complete: true, storedAtMs: 1 };
    const files = { "1.json": JSON.stringify({ ...note, ...rest }), "1.data": "GGUF" };
    for (const [name, text] of Object.entries({ ...files, "1.hashes": "h".repeat(32) })) {
      const writable = await (await folder.getFileHandle(name, { create: true })).createWritable();
      await writable.write(text);
      await writable.close();
    }
  }, key);
  assert.deepEqual(await keys(), [at("/m.gguf")], "listed without the credential");
  assert.equal((await load(at("/other.gguf"))).digest, digestOf(FILE));
  while ((await keys()).includes(at("/m.gguf"))) await pause(20);
  assert.deepEqual(await keys(), [at("/other.gguf")]);
  assert.equal((await load(key)).digest, digestOf(FILE));
  assert.deepEqual((await keys()).sort(), [at("/m.gguf"), at("/other.gguf")]);
});

test("messages name a URL without its query", async () => {
  state.status = 403;
  const url = ["/m.gguf?sig=SECRET", "/n.gguf?v=1&private_token=SECRET"].map(at);
  const { message } = await load({ url });
  assert.match(message, /\/m\.gguf answered 403.*\/n\.gguf answered 403/);
  assert.doesNotMatch(message, /SECRET/);
});

describe("the hub", () => {
  let hub;
  beforeEach(async () => {
    hub = await startHub({
      "/owner/name/main/model.gguf": FILE,
      "/owner/name/v2/model.gguf": SMALL,
      "/owner/folder/main/config.json": SMALL,
      "/owner/folder/main/model.safetensors": FILE,
    });
  });
  afterEach(() => hub.close());

  test("serves files, revisions and folders by name, each stored once", async () => {
    const options = { hub: { baseURL: hub.hub.origin } };
    const file = await load("hf:owner/name/model.gguf", options);
    assert.equal(file.digest, digestOf(FILE), file.message);
    const revision = await load("hf:owner/name/model.gguf@v2", options);
    assert.equal(revision.digest, digestOf(SMALL), revision.message);
    const folder = await load("hf:owner/folder", options);
    assert.equal(folder.digest, digestOf(Buffer.concat([SMALL, FILE])), folder.message);
    assert.equal((await keys()).length, 4);
    hub.cdn.requests.length = 0;
    assert.equal((await load("hf:owner/name/model.gguf", options)).digest, digestOf(FILE));
    assert.ok(hub.cdn.requests.every(({ method }) => method === "HEAD"));
    assert.equal((await keys()).length, 4);
  });

  test("gets the token, but the origin that it redirects to does not", async () => {
    hub.hub.token = "hf_secret";
    const refused = await load("hf:owner/name/model.gguf", { hub: { baseURL: hub.hub.origin } });
    assert.match(refused.message, /model\.gguf answered 401/);
    const options = { hub: { baseURL: hub.hub.origin, token: "hf_secret" } };
    const { digest, message } = await load("hf:owner/name/model.gguf", options);
    assert.equal(digest, digestOf(FILE), message);
    assert.ok(hub.cdn.requests.length > 0);
    assert.deepEqual(
      hub.cdn.requests.filter(({ headers }) => headers.authorization),
      [],
    );
  });

  test("says what to write for a bare repository", async () => {
    const { message } = await load("owner/name");
    assert.match(message, /write "hf:owner\/name\/FILE\.gguf"/);
  });
});

describe("mirrors", () => {
  let second;
  let other;
  beforeEach(async () => {
    other = { bytes: FILE, etag: '"of the other server"' };
    second = await startModelServer(other);
  });
  afterEach(() => second.close());
  const urls = () => ({ url: [at("/m.gguf"), new URL("/copy/m.gguf", second.url).href] });

  test("replace a server that does not have the file, into the same entry", async () => {
    state.status = 404;
    assert.equal((await load(urls())).digest, digestOf(FILE));
    assert.deepEqual(await keys(), [at("/m.gguf")]);
    // The first server is back with another ETag. Nothing is downloaded again.
    delete state.status;
    const { sentBytes } = other;
    assert.equal((await load(urls())).digest, digestOf(FILE));
    assert.equal(state.sentBytes, 0);
    assert.equal(other.sentBytes, sentBytes);
  });

  test("do not replace a cached file while the first server is down", async () => {
    await load(urls());
    await server.close();
    assert.equal((await load(urls())).digest, digestOf(FILE));
    assert.equal(other.requests.length, 0);
  });
});

describe("a download", () => {
  test("is paused and resumed by a range request", async () => {
    state.holdAfter = 5 * MIB;
    const loading = page.evaluate(
      async ([url]) => {
        const progress = [];
        window.engine = await startFake({
          model: url,
          background: true,
          onProgress: (event) => progress.push(event),
        });
        window.progress = progress;
        await until(
          () => progress.some(({ loadedBytes }) => loadedBytes > 4 << 20),
          "half has arrived",
        );
        window.engine.pauseDownload();
      },
      [server.url],
    );
    await loading;
    await pause(300);
    delete state.holdAfter;
    const { sentBytes } = state;
    const before = state.requests.length;
    await pause(300);
    assert.equal(state.requests.length, before, "requests during the pause");
    assert.equal(state.sentBytes, sentBytes, "bytes during the pause");
    const digest = await page.evaluate(async () => {
      window.engine.resumeDownload();
      await window.engine.ready;
      return (await window.engine.info()).sourceDigest;
    });
    assert.equal(digest, digestOf(FILE));
    assert.match(state.requests.at(-1), /^bytes=[1-9]\d+-$/);
  });

  test("reports its rate and the remaining time", async () => {
    state.holdAfter = 6 * MIB;
    const loading = load(server.url);
    while (state.sentBytes < 6 * MIB) await pause(10);
    // A rate is shown after half a second.
    await pause(700);
    delete state.holdAfter;
    const { progress, message } = await loading;
    const downloads = progress.filter(({ phase }) => phase === "download");
    assert.ok(downloads.length > 1, message);
    const { bytesPerSecond, remainingMs, loadedBytes, totalBytes } = downloads.at(-1);
    assert.equal(loadedBytes, totalBytes);
    // The download took at least the half second before a rate is shown.
    assert.ok(bytesPerSecond > 0 && bytesPerSecond <= 2 * FILE.length, `${bytesPerSecond}`);
    assert.equal(remainingMs, 0);
  });

  test("goes on without storage, and engine.info() says so", async () => {
    const kept = await load(server.url);
    assert.equal(kept.storage, "opfs");
    assert.equal(kept.storageReason, undefined);
    const workerUrl = "/fixtures/no_storage_worker.mjs";
    const ranges = await load(server.url, { workerUrl });
    assert.equal(ranges.digest, digestOf(FILE), ranges.message);
    assert.equal(ranges.storage, "none");
    assert.match(ranges.storageReason, /gives this page no storage/);
    state.ranges = false;
    assert.equal((await load(server.url, { workerUrl })).storage, "memory");
    const wanted = await load({ url: server.url, cache: false });
    assert.equal(wanted.storageReason, undefined);
  });

  test("is kept in the Cache API where there is no file system, resumed and repaired", async () => {
    await page.evaluate(() => {
      Object.defineProperty(StorageManager.prototype, "getDirectory", { value: undefined });
    });
    const options = { workerUrl: "/fixtures/no_opfs_worker.mjs" };
    // It breaks off after the first chunk.
    state.stallAfter = 5 * MIB;
    const { name } = await page.evaluate(
      ([model, options]) =>
        caught(() => {
          const controller = new AbortController();
          const onProgress = ({ loadedBytes }) => loadedBytes >= 5 << 20 && controller.abort();
          return startFake({ model, onProgress, signal: controller.signal, ...options });
        }),
      [server.url, options],
    );
    assert.equal(name, "AbortError");
    const [part] = await cache("list");
    assert.deepEqual([part.complete, part.storedBytes], [false, 4 * MIB]);
    delete state.stallAfter;
    const loaded = await load(server.url, options);
    assert.equal(loaded.digest, digestOf(FILE), loaded.message);
    assert.equal(loaded.storage, "cache");
    assert.equal(loaded.storageReason, undefined);
    assert.equal(state.requests.at(-1), `bytes=${4 * MIB}-`);

    // The next visit sends no byte, except for a chunk that is damaged or lost.
    state.requests.length = 0;
    const { sentBytes } = state;
    assert.equal((await load(server.url, options)).digest, digestOf(FILE));
    assert.equal(state.sentBytes, sentBytes, `sent for ${state.requests.join(", ")}`);
    await page.evaluate(async () => {
      for (const cacheName of await caches.keys()) {
        const cache = await caches.open(cacheName);
        for (const request of await cache.keys()) {
          if (request.url.endsWith(".data?part=1")) await cache.delete(request);
          if (!request.url.endsWith(".data?part=2")) continue;
          const bytes = new Uint8Array(await (await cache.match(request)).arrayBuffer());
          bytes[5] ^= 16;
          await cache.put(request, new Response(bytes));
        }
      }
    });
    assert.equal((await load(server.url, options)).digest, digestOf(FILE));
    assert.deepEqual(state.requests.slice(-2), [
      `bytes=${4 * MIB}-${8 * MIB - 1}`,
      `bytes=${8 * MIB}-${FILE.length - 1}`,
    ]);

    // A new version replaces the old one.
    Object.assign(state, { bytes: SMALL, etag: '"two"' });
    assert.equal((await load(server.url, options)).digest, digestOf(SMALL));
    const [{ occupiedBytes, complete }] = await cache("list");
    assert.ok(complete && occupiedBytes < MIB);
    await cache("pin", server.url);
    assert.deepEqual(await cache("evict", { toBytes: 0 }), []);
    assert.equal((await cache("delete", server.url)).length, 1);
    const left = await page.evaluate(() => caches.keys());
    assert.deepEqual(left, []);
  });
});

describe("the cache", () => {
  const NAMES = ["/a.gguf", "/b.gguf", "/c.gguf"];
  const [A, B, C] = [0, 1, 2];

  /** Three cached files, loaded in this order. */
  const fill = async () => {
    state.bytes = SMALL;
    for (const name of NAMES) {
      const { digest, message } = await load(at(name));
      assert.equal(digest, digestOf(SMALL), message);
    }
    return NAMES.map(at);
  };

  test("is listed and measured", async () => {
    const started = Date.now();
    const [a] = await fill();
    const files = await page.evaluate(async () =>
      (await inpage.cache.list()).map((file) => ({
        ...file,
        dates: [file.storedAt, file.lastUsedAt].map((date) => date instanceof Date),
        at: file.storedAt.getTime(),
      })),
    );
    assert.deepEqual(
      files.map(({ key }) => key),
      NAMES.map(at),
    );
    const { occupiedBytes, dates, at: storedAt, storedAt: _, lastUsedAt: __, ...file } = files[A];
    assert.deepEqual(file, {
      key: a,
      url: a,
      sizeBytes: SMALL.length,
      storedBytes: SMALL.length,
      complete: true,
      pinned: false,
    });
    assert.deepEqual(dates, [true, true]);
    assert.ok(storedAt >= started - 2 && storedAt <= Date.now() + 2);
    const size = await cache("size");
    assert.equal(size.files, 3);
    assert.ok(size.occupiedBytes >= 3 * SMALL.length && occupiedBytes >= SMALL.length);
    assert.ok(size.siteBytes >= size.occupiedBytes && size.quotaBytes > size.siteBytes);
  });

  test("lists a download that broke off", async () => {
    state.stallAfter = 5 * MIB;
    const aborted = await page.evaluate(
      ([url]) =>
        caught(() => {
          const controller = new AbortController();
          return startFake({
            model: url,
            signal: controller.signal,
            onProgress: ({ loadedBytes }) => loadedBytes >= 5 << 20 && controller.abort(),
          });
        }),
      [at("/m.gguf")],
    );
    assert.equal(aborted.name, "AbortError");
    const [file] = await cache("list");
    assert.equal(file.complete, false);
    assert.equal(file.storedBytes, 4 * MIB);
    assert.equal(file.sizeBytes, FILE.length);
  });

  test("deletes what is named, and nothing else", async () => {
    const urls = await fill();
    const deleted = await cache("delete", `${urls[B]}?sig=1`);
    assert.deepEqual(
      deleted.map(({ key }) => key),
      [urls[B]],
    );
    assert.deepEqual(await keys(), [urls[A], urls[C]]);
    assert.deepEqual(await cache("delete", urls[B]), []);
    const { sentBytes } = state;
    await load(urls[B]);
    assert.ok(state.sentBytes > sentBytes, "it is downloaded again");
  });

  test("evicts the least recently used files on request, but never pinned ones", async () => {
    const urls = await fill();
    await load(urls[A]);
    assert.deepEqual(await keys(), [urls[B], urls[C], urls[A]]);
    await cache("pin", urls[B]);
    assert.equal((await cache("list"))[0].pinned, true);
    const { occupiedBytes } = await cache("size");
    assert.deepEqual(await cache("evict", { toBytes: occupiedBytes }), []);
    const evicted = await cache("evict", { toBytes: occupiedBytes - 1 });
    assert.deepEqual(
      evicted.map(({ key }) => key),
      [urls[C]],
    );
    await cache("evict", { toBytes: 0 });
    assert.deepEqual(await keys(), [urls[B]]);
    await cache("unpin", urls[B]);
    await cache("evict", { toBytes: 0 });
    assert.deepEqual(await keys(), []);
    await assert.rejects(cache("evict", { toBytes: "1 GB" }), /toBytes must be a number/);
  });

  test("is cleared, with or without pinned files", async () => {
    const urls = await fill();
    await cache("pin", urls[A]);
    assert.equal((await cache("clear", { keepPinned: true })).length, 2);
    assert.deepEqual(await keys(), [urls[A]]);
    assert.equal((await cache("clear")).length, 1);
    const left = await page.evaluate(async () => {
      const root = await navigator.storage.getDirectory();
      const names = [];
      for await (const name of (await root.getDirectoryHandle("inpage-models")).keys())
        names.push(name);
      return names;
    });
    assert.deepEqual(left, []);
    await assert.rejects(cache("pin", urls[A]), {
      code: "not_cached",
      message: /a\.gguf is cached/,
    });
  });

  test("does not delete what is being downloaded, and says so", async () => {
    const urls = await fill();
    Object.assign(state, { bytes: FILE, holdAfter: 5 * MIB });
    await page.evaluate(
      async ([url]) => {
        window.controller = new AbortController();
        const onProgress = ({ loadedBytes }) => {
          window.loadedBytes = loadedBytes;
        };
        const { signal } = window.controller;
        window.loading = caught(() => startFake({ model: url, onProgress, signal }));
        await until(() => window.loadedBytes > 4 << 20, "half has arrived");
      },
      [at("/big.gguf")],
    );
    await assert.rejects(cache("delete", at("/big.gguf")), {
      code: "cache_in_use",
      message: /big\.gguf is being downloaded or loaded/,
    });
    await assert.rejects(cache("clear"), { code: "cache_in_use" });
    assert.deepEqual(await keys(), [at("/big.gguf")], `${urls} are deleted`);
    await page.evaluate(async () => {
      window.controller.abort();
      await window.loading;
    });
    await page.evaluate(() =>
      until(async () => (await inpage.cache.clear().catch(() => [])).length === 1, "it is cleared"),
    );
    assert.deepEqual(await keys(), []);
  });

  test("does not delete what an engine is loading from it", async () => {
    await load(at("/m.gguf"));
    await page.evaluate(
      ([url]) => {
        window.loading = startFake({ model: url, fakeLoadMs: 1500 });
        return until(async () => {
          const { held } = await navigator.locks.query();
          return held.some(({ name }) => name.startsWith("inpage-model-reading"));
        }, "the engine reads");
      },
      [at("/m.gguf")],
    );
    await assert.rejects(cache("delete", at("/m.gguf")), { code: "cache_in_use" });
    await page.evaluate(() => window.loading);
    assert.equal((await cache("delete", at("/m.gguf"))).length, 1);
  });

  test("requests persistence when the app wants it", async () => {
    const calls = await page.evaluate(async () => {
      let calls = 0;
      const { persist } = StorageManager.prototype;
      StorageManager.prototype.persist = function () {
        calls += 1;
        return persist.call(this);
      };
      await startFake({});
      const without = calls;
      await startFake({ persist: true });
      const { cache } = inpage;
      return [without, calls, typeof (await cache.persist()), typeof (await cache.persisted())];
    });
    assert.deepEqual(calls, [0, 1, "boolean", "boolean"]);
  });

  test("is empty where the browser provides no storage", async () => {
    const result = await page.evaluate(async () => {
      Object.defineProperty(StorageManager.prototype, "getDirectory", { value: undefined });
      Object.defineProperty(window, "caches", { value: undefined });
      const { cache } = inpage;
      return [await cache.list(), await cache.clear(), await cache.delete("https://a.example/m")];
    });
    assert.deepEqual(result, [[], [], []]);
  });
});
