//! Sources over HTTP without a browser, and therefore without storage: the hub's token, inspection, mirrors and pauses.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { systemClock } from "../../www/dist/model_source/transfer/clock.js";
import { openHeads } from "../../www/dist/model_source/head_files.js";
import { openModel } from "../../www/dist/model_source/open.js";
import { DownloadPause } from "../../www/dist/model_source/transfer/pause.js";
import { resolveModel } from "../../www/dist/options/model.js";
import { startModelServer } from "../browser/model_server.mjs";
import { startHub } from "./hub_server.mjs";
import { randomBytes } from "./random.mjs";

const FILE = randomBytes(9_000_000, 1);

const createHasher = async () => {
  const hash = createHash("sha256");
  return { update: (bytes) => hash.update(bytes), finish: () => hash.digest("hex") };
};

/** All bytes of the first file. */
async function readAll(files) {
  const source = await files.open(files.ggufName ?? "config.json");
  return source.read(0, source.size);
}

describe("the hub", () => {
  // Ends reads ahead after the tests.
  const over = new AbortController();
  const { signal } = over;
  let hub;
  before(async () => {
    hub = await startHub({ "/owner/name/main/model.gguf": FILE });
  });
  after(() => {
    over.abort();
    return hub.close();
  });
  beforeEach(() => {
    hub.hub.token = "hf_secret";
    hub.hub.requests.length = 0;
    hub.cdn.requests.length = 0;
  });
  const locate = (token) =>
    resolveModel("hf:owner/name/model.gguf", {
      baseURL: hub.hub.origin,
      ...(token && { token }),
    }).location;

  test("gets the token, and the origin that it redirects to does not", async () => {
    for (const open of [openModel, (location, { signal }) => openHeads(location, signal)]) {
      hub.cdn.requests.length = 0;
      const files = await open(locate("hf_secret"), { signal });
      const source = await files.open("model.gguf");
      assert.deepEqual(Buffer.from(await source.read(0, 1000)), FILE.subarray(0, 1000));
      await files.close?.();
      assert.ok(hub.cdn.requests.length > 0);
      assert.ok(hub.cdn.requests.every(({ headers }) => headers.authorization === undefined));
    }
    assert.ok(
      hub.hub.requests.every(({ headers }) => headers.authorization === "Bearer hf_secret"),
    );
  });

  test("says that a repository of GGUF files is not a model folder", async () => {
    const { location } = resolveModel("hf:owner/name", {
      baseURL: hub.hub.origin,
      token: "hf_secret",
    });
    await assert.rejects(
      openModel(location, { signal }),
      /config\.json answered 404 Not Found; .* a GGUF file is named by its own URL/,
    );
  });

  test("refuses without the token, and the message says so", async () => {
    await assert.rejects(openModel(locate(undefined), { signal }), /model\.gguf answered 401/);
  });
});

describe("mirrors", () => {
  const other = Buffer.from(FILE);
  other[3] ^= 1;
  const sha256 = createHash("sha256").update(FILE).digest("hex");
  let wrong;
  let right;
  beforeEach(async () => {
    wrong = await startModelServer({ bytes: other, etag: '"other"' });
    right = await startModelServer({ bytes: FILE, etag: '"file"' });
  });
  afterEach(() => Promise.all([wrong.close(), right.close()]));
  const open = (url) =>
    openModel(resolveModel({ url, cache: false, sha256 }).location, {
      signal: new AbortController().signal,
      createHasher,
    });

  test("with the wrong bytes are replaced, if the hash is known", async () => {
    const files = await open([wrong.url, right.url]);
    const source = await files.open(files.ggufName);
    // The header of a model is read before the rest arrives.
    const header = (await source.read(0, 1000)).slice();
    const rest = await source.read(1000, source.size - 1000);
    assert.equal(Buffer.compare(Buffer.concat([header, rest]), FILE), 0);
  });

  test("that trickle are replaced", async () => {
    const trickling = createServer(async (request, response) => {
      const headers = { etag: '"file"', "content-length": FILE.length - 1000 };
      const range = `bytes 1000-${FILE.length - 1}/${FILE.length}`;
      if (request.headers.range?.startsWith("bytes=1000-")) {
        response.writeHead(206, { ...headers, "content-range": range });
      } else {
        response.writeHead(200, { ...headers, "content-length": FILE.length });
        response.write(FILE.subarray(0, 1000));
      }
      for (let at = 1000; !response.destroyed; at++) {
        response.write(FILE.subarray(at, at + 1));
        await pause(50);
      }
    });
    await once(trickling.listen(0, "127.0.0.1"), "listening");
    try {
      const urls = [`http://127.0.0.1:${trickling.address().port}/m.gguf`, right.url];
      // A twentieth of the time: a server is too slow after 1.5 seconds.
      const clock = { ...systemClock, sleep: (ms, end) => systemClock.sleep(ms / 20, end) };
      for (const hash of [undefined, sha256]) {
        const { location } = resolveModel({ url: urls, cache: false, sha256: hash });
        const over = new AbortController();
        const files = await openModel(location, { signal: over.signal, createHasher, clock });
        assert.equal(Buffer.compare(await readAll(files), FILE), 0);
        over.abort();
      }
    } finally {
      trickling.closeAllConnections();
      trickling.close();
    }
  });

  test("that all have the wrong bytes are an error with both hashes", async () => {
    const files = open([wrong.url, wrong.url]).then(async (files) => {
      const source = await files.open(files.ggufName);
      return source.read(0, source.size);
    });
    await assert.rejects(
      files,
      new RegExp(`has the SHA-256 [0-9a-f]{64}, but expected is ${sha256}`),
    );
  });
});

describe("a server that answers slowly", () => {
  let server;
  let url;
  let ranges;
  /** Bytes of a response before it stalls forever. */
  let stallsAfter;
  before(async () => {
    server = createServer((request, response) => {
      const { range } = request.headers;
      ranges.push(range);
      const start = Number(/^bytes=(\d+)-/.exec(range ?? "")?.[1] ?? 0);
      const size = FILE.length;
      response.writeHead(206, {
        etag: '"one"',
        "content-range": `bytes ${start}-${size - 1}/${size}`,
        "content-length": size - start,
      });
      response.write(FILE.subarray(start, start + stallsAfter));
      if (start + stallsAfter >= size) response.end();
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    url = `http://127.0.0.1:${server.address().port}/m.gguf`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    ranges = [];
    stallsAfter = Number.POSITIVE_INFINITY;
  });

  test("is paused and resumed from where it stopped, and the pause is not a failure", async () => {
    stallsAfter = 5_000_000;
    const downloadPause = new DownloadPause();
    const progress = [];
    let onHalf;
    const half = new Promise((resolve) => {
      onHalf = resolve;
    });
    // A file with an expected hash is downloaded as a whole.
    const sha256 = createHash("sha256").update(FILE).digest("hex");
    const model = { url, cache: false, sha256 };
    const files = await openModel(resolveModel(model).location, {
      signal: new AbortController().signal,
      pause: downloadPause,
      createHasher,
      onProgress(event) {
        progress.push(event);
        if (event.loadedBytes === 5_000_000) onHalf();
      },
    });
    const whole = readAll(files);
    await half;
    const closed = once(server, "request").then(() => "asked again");
    downloadPause.pause();
    const waited = new Promise((resolve) => setTimeout(resolve, 100, "silence"));
    assert.equal(await Promise.race([closed, waited]), "silence");
    assert.equal(ranges.length, 1);
    stallsAfter = Number.POSITIVE_INFINITY;
    downloadPause.resume();
    assert.equal(Buffer.compare(await whole, FILE), 0);
    assert.deepEqual(ranges, ["bytes=0-", "bytes=5000000-"]);
    assert.equal(progress.at(-1).loadedBytes, FILE.length);
  });
});
