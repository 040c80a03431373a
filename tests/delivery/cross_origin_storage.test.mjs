//! Cross-Origin Storage, a proposal that no browser has yet: a fake of its interface in Chromium's worker. It is used only where the
//! app asks for it, and its bytes are not trusted.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "../browser/harness.mjs";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { randomBytes } from "./random.mjs";

const MIB = 1 << 20;
const FILE = randomBytes(5 * MIB + 77, 1);
const OTHER = randomBytes(5 * MIB + 77, 2);
const hexOf = (bytes) => createHash("sha256").update(bytes).digest("hex");
/** The digest in the form in which the fake engine reports it. */
const digestOf = (bytes) =>
  [...createHash("sha256").update(bytes).digest()].map((b) => b.toString(16)).join(",");
const SHA256 = hexOf(FILE);

let harness;
let page;
let server;
let url;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  page = await harness.open();
  server = await new FaultServer({ bytes: FILE, etag: '"one"' }).listen();
  url = `${server.origin}/m.gguf`;
});
afterEach(async () => {
  await page.context().close();
  await server.close();
});

/** Loads a model; then, with `waitFor`, waits until the storage was called with this. */
async function load(model, { workerUrl = "/fixtures/cross_origin_worker.mjs", waitFor } = {}) {
  const warnings = [];
  const onConsole = (message) => warnings.push(message.text());
  page.on("console", onConsole);
  const result = await page.evaluate(
    async ([model, workerUrl, waitFor]) =>
      caught(async () => {
        const engine = await startFake({ model, workerUrl });
        const { sourceDigest, storage } = await engine.info();
        const hasCall = async () => {
          const calls = await (await caches.open("cross-origin")).match("/calls");
          return (await calls?.json())?.some((call) => waitFor in call);
        };
        if (waitFor) await until(hasCall, "the storage was called", 60_000);
        await engine.dispose();
        return { digest: sourceDigest, storage };
      }),
    [model, workerUrl, waitFor],
  );
  page.off("console", onConsole);
  return { ...result.value, message: result.message, warnings: warnings.join("\n") };
}

const put = (path, text) =>
  page.evaluate(
    async ([path, text]) => (await caches.open("cross-origin")).put(path, new Response(text)),
    [path, text],
  );

/** Lets the storage have these bytes under the hash of FILE. */
const provide = (bytes) =>
  page.evaluate(
    async ([hash, text]) => {
      const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
      const cache = await caches.open("cross-origin");
      await cache.put(`/cross-origin/${hash}`, new Response(bytes));
    },
    [SHA256, bytes.toString("base64")],
  );

const calls = () =>
  page.evaluate(async () => {
    const response = await (await caches.open("cross-origin")).match("/calls");
    return (await response?.json()) ?? [];
  });
const LOOKUP = { algorithm: "SHA-256", value: SHA256, options: {} };
const READ = { crossOriginStorage: { read: true } };

describe("Cross-Origin Storage", () => {
  test("is not called unless the app asks for it", async () => {
    await provide(FILE);
    const { digest, storage, message } = await load({ url, sha256: SHA256 });
    assert.equal(digest, digestOf(FILE), message);
    assert.equal(storage, "opfs");
    assert.deepEqual(await calls(), []);
  });

  for (const cache of [true, false]) {
    test(`has the model: nothing is downloaded, ${cache ? "cached" : "not cached"}`, async () => {
      await provide(FILE);
      const { digest, storage, message } = await load({ url, sha256: SHA256, cache, ...READ });
      assert.equal(digest, digestOf(FILE), message);
      assert.equal(storage, "cross-origin");
      assert.deepEqual(server.requests, []);
      assert.deepEqual(await calls(), [LOOKUP]);
    });
  }

  test("is asked for the hash that the hub states", async () => {
    await provide(FILE);
    server.linkedEtag = `"${SHA256}"`;
    const { digest, storage, message } = await load({ url, ...READ });
    assert.equal(digest, digestOf(FILE), message);
    assert.equal(storage, "cross-origin");
    assert.equal(server.sentBytes, 0);
  });

  test("is not asked where the hash is not known", async () => {
    await provide(FILE);
    assert.equal((await load({ url, ...READ })).storage, "opfs");
    assert.deepEqual(await calls(), []);
  });

  test("does not have the model: it is downloaded, and the next visit does not ask again", async () => {
    for (let visit = 0; visit < 2; visit++) {
      const { digest, storage, message, warnings } = await load({ url, sha256: SHA256, ...READ });
      assert.equal(digest, digestOf(FILE), message);
      assert.equal(storage, "opfs");
      assert.doesNotMatch(warnings, /cross-origin/);
    }
    assert.equal(server.sentBytes, FILE.length);
    assert.deepEqual(await calls(), [LOOKUP]);
  });

  test("has other bytes: they are not used", async () => {
    await provide(OTHER);
    const { digest, storage, message, warnings } = await load({ url, sha256: SHA256, ...READ });
    assert.equal(digest, digestOf(FILE), message);
    assert.equal(storage, "opfs");
    assert.match(warnings, /could not be read from cross-origin storage: its bytes have another/);
  });

  test("refuses: the model is downloaded", async () => {
    await put("/refusal", "NotAllowedError");
    const model = { url, sha256: SHA256, crossOriginStorage: { read: true, offer: "*" } };
    const { digest, message } = await load(model);
    assert.equal(digest, digestOf(FILE), message);
  });

  test("does not exist: the model is downloaded", async () => {
    const model = { url, sha256: SHA256, crossOriginStorage: { read: true, offer: "*" } };
    const { digest, message } = await load(model, { workerUrl: "/fixtures/fake_worker.mjs" });
    assert.equal(digest, digestOf(FILE), message);
  });

  test("is offered a verified download on request, for the origins that the app names", async () => {
    const origins = ["https://a.example", "https://b.example"];
    for (const [offer, options] of [
      ["same-site", { create: true }],
      [origins, { create: true, origins }],
      ["*", { create: true, origins: "*" }],
    ]) {
      await page.evaluate(() => Promise.all([caches.delete("cross-origin"), inpage.cache.clear()]));
      const model = { url, sha256: SHA256, crossOriginStorage: { offer } };
      const { digest, message } = await load(model, { waitFor: "stored" });
      assert.equal(digest, digestOf(FILE), message);
      assert.deepEqual(await calls(), [{ ...LOOKUP, options }, { stored: SHA256 }]);
    }
  });

  test("is not offered a file without a hash, or that was damaged in transit", async () => {
    const crossOriginStorage = { offer: "*" };
    assert.equal((await load({ url, crossOriginStorage })).digest, digestOf(FILE));
    const faults = [{ kind: FAULTS.flip, at: 4 * MIB }];
    server.nextFault = () => faults.shift();
    const other = `${server.origin}/other.gguf`;
    const { message } = await load({ url: other, sha256: SHA256, crossOriginStorage });
    assert.match(message, /expected is/);
    assert.deepEqual(await calls(), []);
  });

  test("options that cannot be used are refused", async () => {
    for (const offer of ["everyone", [], ["https://a.example/path"], true]) {
      const { message } = await load({ url, crossOriginStorage: { offer } });
      assert.match(message, /crossOriginStorage.offer must be/);
    }
  });
});
