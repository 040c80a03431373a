//! Mirrors of a file: when one fails permanently, the next one is used, and versions are never combined. Also the files of a
//! location, and how they are requested.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { NoSuchFile } from "../../www/dist/model_source/store/failure.js";
import { openMirrored } from "../../www/dist/model_source/sources/mirrors.js";
import { locatedFiles } from "../../www/dist/model_source/sources/named_files.js";
import { fetchWith } from "../../www/dist/model_source/transfer/requests.js";
import { resolveModel } from "../../www/dist/options/model.js";

const FILE = Uint8Array.from({ length: 10_000_000 }, (_, i) => (i * 2654435761) >> 13);
const URLS = ["https://a.example/m", "https://b.example/m", "https://c.example/m"];
const signal = new AbortController().signal;

/** Servers that fail after some bytes. `opened` lists the URLs in the order in which they were opened. */
function servers(states) {
  const opened = [];
  const open = async (url) => {
    opened.push(url);
    const { failsAfter = Infinity, bytes = FILE, refuses } = states[URLS.indexOf(url)];
    if (refuses) throw refuses;
    return {
      size: bytes.length,
      async read(offset, length) {
        // As in a download, bytes that have arrived can be read.
        if (offset + length > failsAfter) throw new TypeError(`${url} failed`);
        return bytes.slice(offset, offset + length);
      },
    };
  };
  return { opened, open };
}

/** Reads the whole source in pieces of growing lengths, two at a time. */
async function readAll(source) {
  const whole = new Uint8Array(source.size);
  const read = async (start, end) => {
    const [from, to] = [Math.min(start, source.size), Math.min(end, source.size)];
    whole.set(await source.read(from, to - from), from);
  };
  let offset = 0;
  for (let step = 1000; offset < source.size; step = Math.min(step * 3, 3 << 20)) {
    const middle = offset + step;
    await Promise.all([read(offset, middle), read(middle, middle + step + 7)]);
    offset = middle + step + 7;
  }
  return whole;
}

const same = (a, b) => Buffer.compare(a, b) === 0;

describe("a mirrored file", () => {
  test("is read from the first server that has it", async () => {
    const absent = new NoSuchFile("a answered 404");
    const { opened, open } = servers([{ refuses: absent }, {}, {}]);
    const source = await openMirrored(URLS, open, signal);
    assert.ok(same(await readAll(source), FILE));
    assert.deepEqual(opened, URLS.slice(0, 2));
  });

  test("continues from the next server, wherever one fails", async () => {
    for (const failsAfter of [0, 500, 4 << 20, 7_000_001, 9_999_998]) {
      const { opened, open } = servers([{ failsAfter }, { failsAfter: failsAfter + 1 }, {}]);
      const source = await openMirrored(URLS, open, signal);
      assert.ok(same(await readAll(source), FILE), `after ${failsAfter}`);
      assert.deepEqual(opened, URLS);
    }
  });

  test("is never combined from two versions", async () => {
    const other = FILE.slice();
    other[3] ^= 1;
    const { opened, open } = servers([{ failsAfter: 6 << 20 }, { bytes: other }, {}]);
    assert.ok(same(await readAll(await openMirrored(URLS, open, signal)), FILE));
    assert.deepEqual(opened, URLS);

    const wrong = servers([{ failsAfter: 6 << 20 }, { bytes: other }, { bytes: FILE.slice(1) }]);
    const reading = readAll(await openMirrored(URLS, wrong.open, signal));
    await assert.rejects(reading, (error) => {
      assert.match(error.message, /a\.example\/m failed/);
      assert.match(error.message, /b\.example\/m has other bytes than were read/);
      assert.match(error.message, /c\.example\/m has 9999999 bytes, .* has 10000000/);
      return true;
    });
  });

  test("names the failure of every server, once", async () => {
    const refuses = URLS.map((url) => ({ refuses: new TypeError(`${url} answered 503`) }));
    await assert.rejects(openMirrored(URLS, servers(refuses).open, signal), {
      name: "TypeError",
      message: URLS.map((url) => `${url} answered 503`).join("; "),
    });
    const source = await openMirrored(
      URLS,
      servers(URLS.map(() => ({ failsAfter: 9 }))).open,
      signal,
    );
    for (let attempt = 0; attempt < 2; attempt++) {
      await assert.rejects(source.read(0, 10), {
        message: URLS.map((url) => `${url} failed`).join("; "),
      });
    }
  });

  test("does not exist only if no server has it", async () => {
    const absent = { refuses: new NoSuchFile("404") };
    const down = { refuses: new TypeError("503") };
    const opening = (states) => openMirrored(URLS, servers(states).open, signal);
    await assert.rejects(opening([absent, absent, absent]), NoSuchFile);
    await assert.rejects(opening([absent, down, absent]), (error) => {
      assert.ok(!(error instanceof NoSuchFile));
      return true;
    });
  });

  test("is not requested from other servers after an abort", async () => {
    const controller = new AbortController();
    const { opened, open } = servers([{ failsAfter: 10 }, {}, {}]);
    const source = await openMirrored(URLS, open, controller.signal);
    controller.abort();
    await assert.rejects(source.read(0, 20), { name: "AbortError" });
    assert.deepEqual(opened, URLS.slice(0, 1));
  });
});

describe("the files of a location", () => {
  const opened = async (model, names) => {
    const files = [];
    const located = await locatedFiles(resolveModel(model).location, {
      async url(file) {
        files.push(file);
        return { size: 1, read: async () => new Uint8Array(1) };
      },
    });
    for (const name of names) await located.open(name);
    return files;
  };

  test("are beside the given one on every mirror, and share a key whatever the signature", async () => {
    const url = [
      "https://a.example/x/m-00001-of-00002.gguf?v=1&sig=S",
      "https://b.example/y/m-00001-of-00002.gguf",
    ];
    const [first, second] = await opened({ url }, ["m-00002-of-00002.gguf"]);
    assert.deepEqual(first.urls, url);
    assert.equal(first.key, "https://a.example/x/m-00001-of-00002.gguf?v=1");
    assert.deepEqual(second.urls, [
      "https://a.example/x/m-00002-of-00002.gguf?v=1&sig=S",
      "https://b.example/y/m-00002-of-00002.gguf",
    ]);
    assert.equal(second.key, "https://a.example/x/m-00002-of-00002.gguf?v=1");
  });

  test("may be in a folder of the given one", async () => {
    const names = ["2_Dense/model.safetensors", "a b#?/config.json"];
    const files = await opened({ folder: "https://a.example/m" }, names);
    assert.deepEqual(
      files.map(({ urls }) => urls),
      [
        ["https://a.example/m/config.json"],
        ["https://a.example/m/2_Dense/model.safetensors"],
        ["https://a.example/m/a%20b%23%3F/config.json"],
      ],
    );
  });

  test("have the hash that the app gave for their name", async () => {
    const sha256 = { "model.safetensors": "0".repeat(64) };
    const model = { folder: "https://a.example/m", sha256 };
    const [config, weights] = await opened(model, ["model.safetensors"]);
    assert.equal(config.sha256, undefined);
    assert.equal(weights.sha256, "0".repeat(64));
  });
});

describe("requests", () => {
  test("have the app's headers, and the token only at its origin", async (context) => {
    const seen = [];
    context.mock.method(globalThis, "fetch", async (url, init) => seen.push([url, init]));
    const hub = { baseURL: "https://hub.example", token: "hf_x" };
    const model = {
      url: ["hf:o/n/m.gguf", "https://hub.example.evil.example/m.gguf"],
      fetch: { headers: { "x-key": "1" }, credentials: "include" },
    };
    const { location } = resolveModel(model, hub);
    const request = fetchWith(location.requests);
    for (const url of location.urls) await request(url, { headers: { range: "bytes=0-" } });
    const headers = seen.map(([, init]) => Object.fromEntries(init.headers));
    assert.deepEqual(headers, [
      { authorization: "Bearer hf_x", range: "bytes=0-", "x-key": "1" },
      { range: "bytes=0-", "x-key": "1" },
    ]);
    assert.ok(seen.every(([, { credentials }]) => credentials === "include"));
  });
});
