//! Each fault of servers, networks, storage and tabs on its own: what is sent, what the model's loader reads, and which messages
//! the developer gets.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { listEntries } from "../../www/dist/model_source/store/cache_layout.js";
import { removeEntry } from "../../www/dist/model_source/store/remove_entry.js";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { CHUNK, PIECE, URL_OF_MODEL, hexOf, load } from "./loading.mjs";
import { MemoryBrowser } from "./memory_browser.mjs";
import { randomBytes } from "./random.mjs";

const SIZE = 6 * CHUNK + 1234;
const FIRST = randomBytes(SIZE, 1);
const SECOND = randomBytes(SIZE, 2);

let browser;
let server;

beforeEach(() => {
  browser = new MemoryBrowser();
  browser.install();
  server = new FaultServer({ bytes: FIRST, etag: '"one"' });
});

const visit = (options) => browser.run(load(browser.openTab(), server, options));

/** The faults of the next responses, in order. */
function failNext(...faults) {
  server.nextFault = () => faults.shift();
}

/** The requests since the last call. */
function sent() {
  return server.requests.splice(0).map(({ method, range }) => `${method} ${range ?? "whole"}`);
}

async function assertLoads(bytes, options) {
  const result = await visit(options);
  if (result.error) throw result.error;
  assert.equal(Buffer.compare(result.bytes, bytes), 0, "the bytes of the file");
  return result;
}

async function assertFails(pattern, options) {
  const { error, ...report } = await visit(options);
  assert.ok(error instanceof TypeError, `${error?.stack}`);
  assert.match(error.message, pattern);
  assert.ok(error.message.includes(URL_OF_MODEL), error.message);
  return { error, ...report };
}

describe("an answer that is not what was asked for", () => {
  const lies = ["otherRange", "multipart", "encodedPart", "noContentRange", "whole"];
  for (const kind of [...lies, "lessRange", "long", "short"]) {
    for (const cache of [true, false]) {
      test(`${kind}, at the first request, ${cache ? "cached" : "not cached"}`, async () => {
        failNext({ kind: FAULTS[kind] });
        await assertLoads(FIRST, { cache });
        server.nextFault = () => undefined;
        await assertLoads(FIRST);
      });

      test(`${kind}, when a download is resumed, ${cache ? "cached" : "not cached"}`, async () => {
        failNext({ kind: FAULTS.cut, at: 2 * CHUNK + 5 }, { kind: FAULTS[kind] });
        await assertLoads(FIRST, { cache });
        server.nextFault = () => undefined;
        await assertLoads(FIRST);
      });
    }
  }

  test("a wrong size is an error, and nothing is stored", async () => {
    for (const cache of [true, false]) {
      failNext({ kind: FAULTS.wrongTotal });
      await assertFails(/changed while it was being read/, { cache });
      await assertLoads(FIRST, { cache });
    }
  });

  test("always, is an error", async () => {
    server.nextFault = () => ({ kind: FAULTS.short });
    await assertFails(/ended after .* bytes.*tried \d+ times; \d+ of \d+ bytes/);
  });

  test("a web page is named as such, and nothing is stored", async () => {
    for (const kind of [FAULTS.page, FAULTS.pageInDisguise]) {
      server.nextFault = () => ({ kind });
      for (const cache of [true, false]) {
        await assertFails(/answered with a web page, not with a model file/, { cache });
      }
      assert.equal((await browser.run(browser.openTab().run(listEntries))).length, 0);
    }
  });
});

describe("a failure that may pass", () => {
  test("is retried from where the response ended", async () => {
    failNext({ kind: FAULTS.cut, at: 2 * CHUNK + 5 });
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["GET bytes=0-", `GET bytes=${2 * CHUNK + 5}-`]);
    assert.equal(server.sentBytes, SIZE);
  });

  test("Retry-After is respected, within bounds", async () => {
    for (const [retryAfter, least_s, most_s] of [
      [7, 7, 8],
      [86_400, 60, 61],
      [undefined, 0.25, 0.5],
    ]) {
      const url = `${URL_OF_MODEL}?${retryAfter}`;
      failNext({ kind: FAULTS.status, status: 503, retryAfter });
      const start_ms = browser.now_ms;
      await assertLoads(FIRST, { url });
      const waited_s = (browser.now_ms - start_ms) / 1000;
      assert.ok(waited_s >= least_s && waited_s <= most_s, `${waited_s} s`);
    }
  });

  for (const status of [408, 425, 429, 500, 502, 503, 504]) {
    test(`status ${status}`, async () => {
      failNext({ kind: FAULTS.status, status });
      await assertLoads(FIRST);
      assert.equal(sent().length, 2);
    });
  }

  test("a stall ends after 20 seconds, in the head and in the body", async () => {
    for (const at of [undefined, 3 * CHUNK]) {
      const url = `${URL_OF_MODEL}?${at}`;
      failNext({ kind: FAULTS.stall, at });
      const start_ms = browser.now_ms;
      await assertLoads(FIRST, { url });
      const waited_s = (browser.now_ms - start_ms) / 1000;
      assert.ok(waited_s >= 20 && waited_s <= 21, `${waited_s} s`);
    }
  });

  describe("a server that trickles", () => {
    /** Large enough that bytes can be progress. */
    const LARGE = randomBytes(400_000, 3);
    const AT = 100_000;
    const trickle = (pieceBytes) => ({ kind: FAULTS.trickle, at: AT, pieceBytes });
    beforeEach(() => {
      server.bytes = LARGE;
    });

    test("is asked again after 30 seconds, from where it was", async () => {
      failNext(trickle(1));
      const start_ms = browser.now_ms;
      await assertLoads(LARGE);
      const waited_s = (browser.now_ms - start_ms) / 1000;
      assert.ok(waited_s >= 30 && waited_s <= 31, `${waited_s} s`);
      const [first, second, ...more] = sent();
      assert.equal(first, "GET bytes=0-");
      assert.match(second, /^GET bytes=1000(29|30)-$/);
      assert.deepEqual(more, []);
    });

    test("all the time is an error that says so, not cached as well", async () => {
      for (const cache of [true, false]) {
        server.nextFault = () => ({ ...trickle(1), at: 0 });
        const start_ms = browser.now_ms;
        await assertFails(/sent only \d+ bytes in 30 seconds, tried 6 times; \d+ of 400000/, {
          cache,
        });
        assert.ok(browser.now_ms - start_ms < 220_000, `${browser.now_ms - start_ms} ms`);
      }
    });

    test("is given up at once where another server has the file", async () => {
      server.nextFault = () => trickle(1);
      const start_ms = browser.now_ms;
      const options = { source: { hasMirror: true } };
      await assertFails(/sent only \d+ bytes in 30 seconds; 1000\d\d of 400000/, options);
      assert.ok(browser.now_ms - start_ms <= 31_000);
      assert.equal(sent().length, 1);
    });

    test("a slow connection is no failure", async () => {
      for (const bytesPerSecond of [20_000, 5000]) {
        server.requests.length = 0;
        server.nextFault = () => ({ ...trickle(bytesPerSecond), at: 0 });
        const url = `${URL_OF_MODEL}?${bytesPerSecond}`;
        const { warnings } = await assertLoads(LARGE, { url });
        assert.deepEqual(sent(), ["GET bytes=0-"]);
        assert.deepEqual(warnings, []);
      }
    });

    test("a slow connection that breaks off again and again is no failure", async () => {
      // Each answer is less than what counts as progress.
      server.nextFault = () => ({ kind: FAULTS.cut, at: 40_000 });
      await assertLoads(LARGE);
      assert.equal(sent().length, 10);
    });

    test("a tab that sleeps and a pause do not make a server slow", async () => {
      server.nextFault = () => ({ ...trickle(5000), at: 0 });
      const tab = browser.openTab();
      const loading = load(tab, server);
      for (let minute = 1; minute < 40; minute++) {
        browser.after(minute * 20_000 - 8000, () => tab.freeze());
        browser.after(minute * 20_000, () => tab.thaw());
      }
      const { bytes, error } = await browser.run(loading);
      if (error) throw error;
      assert.equal(Buffer.compare(bytes, LARGE), 0);
      assert.equal(sent().length, 1);
    });
  });

  for (const [what, fault] of [
    ["breaks off after each byte", { kind: FAULTS.cut, at: 1 }],
    ["sends a byte of each requested range", { kind: FAULTS.lessRange, length: 1 }],
  ]) {
    test(`a server that ${what} is given up after six attempts`, async () => {
      server.nextFault = () => fault;
      await assertFails(/tried 6 times; 6 of \d+ bytes/);
      assert.equal(sent().length, 6);
    });
  }

  test("that does not pass gives an error with the URL, the bytes, the attempts and the cause", async () => {
    let count = 0;
    server.nextFault = () =>
      count++ === 0 ? { kind: FAULTS.cut, at: 2 * CHUNK } : { kind: FAULTS.refuse };
    await assertFails(
      new RegExp(
        `no answer from .* tried 6 times; ${2 * CHUNK} of ${SIZE} bytes have arrived.*running`,
      ),
    );
    server.nextFault = () => undefined;
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), [`GET bytes=${2 * CHUNK}-`]);
  });

  test("is not retried offline at the first visit", async () => {
    navigator.onLine = false;
    server.nextFault = () => ({ kind: FAULTS.refuse });
    await assertFails(/The browser is offline/);
    assert.equal(sent().length, 1);
  });

  test("a refusal is not retried", async () => {
    server.nextFault = () => ({ kind: FAULTS.status, status: 403 });
    await assertFails(/answered 403/);
    assert.equal(sent().length, 1);
  });

  test("an abort ends the waiting", async () => {
    const abort = new AbortController();
    server.nextFault = () => ({ kind: FAULTS.stall });
    browser.after(5000, () => abort.abort(new TypeError(`${URL_OF_MODEL} aborted by the test`)));
    const start_ms = browser.now_ms;
    await assertFails(/aborted by the test/, { signal: abort.signal });
    assert.equal(browser.now_ms - start_ms, 5000);
  });
});

describe("a file that changes during its download", () => {
  /** The file changes after its first chunks. With `isSimilar`, these chunks do not change. */
  function changeAfterCut({ isSimilar }) {
    const second = Buffer.from(SECOND);
    if (isSimilar) FIRST.copy(second, 0, 0, 4 * CHUNK);
    let isFirst = true;
    server.nextFault = () => {
      if (isFirst) {
        isFirst = false;
        return { kind: FAULTS.cut, at: 3 * CHUNK + 50 };
      }
      Object.assign(server, { bytes: second, ...(server.etag && { etag: '"two"' }) });
      return undefined;
    };
    return second;
  }

  for (const etag of ['"one"', undefined]) {
    const kind = etag ? "with an ETag" : "without validators";

    test(`is never combined from two versions, ${kind}`, async () => {
      for (const cache of [true, false]) {
        Object.assign(server, { bytes: FIRST, etag, ranges: cache });
        changeAfterCut({ isSimilar: false });
        await assertFails(/changed while it was being read: load the model again/, { cache });
        await assertLoads(SECOND, { cache });
      }
    });

    test(`is used if the bytes that were read are the same, ${kind}`, async () => {
      Object.assign(server, { etag });
      const second = changeAfterCut({ isSimilar: true });
      await assertLoads(second);
    });

    test(`between two visits is downloaded from where it differs, ${kind}`, async () => {
      Object.assign(server, { etag });
      failNext({ kind: FAULTS.cut, at: 5 * CHUNK }, { kind: FAULTS.status, status: 403 });
      await assertFails(/answered 403/);
      server.bytes = Buffer.from(FIRST);
      server.bytes[2 * CHUNK + 9] ^= 1;
      if (etag) server.etag = '"two"';
      await assertLoads(server.bytes);
    });
  }
});

describe("a stored file", () => {
  const storedFile = (ending) => {
    const [folder] = browser.root.entries.get("inpage-models").entries.values();
    return [...folder.entries].find(([name]) => name.endsWith(ending))[1];
  };

  test("is revalidated without its bytes", async () => {
    await assertLoads(FIRST);
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
    assert.equal(server.sentBytes, SIZE);
  });

  test("is revalidated with one byte where HEAD is not allowed", async () => {
    await assertLoads(FIRST);
    sent();
    failNext({ kind: FAULTS.status, status: 403 });
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-", "GET bytes=0-0"]);
    assert.ok(server.sentBytes <= SIZE + 1);
  });

  describe("of a server whose replicas state other validators", () => {
    const NAMES = ["one", "two", "three"];
    /** The replica that answers all requests of the next load. */
    const turnTo = (number, validator) => {
      const stated = { etag: undefined, lastModified: undefined };
      const value = {
        etag: `"${NAMES[number]}"`,
        lastModified: `Sun, 2${number} Nov 2026 01:00:00 GMT`,
      };
      Object.assign(server, stated, { [validator]: value[validator] });
    };

    for (const validator of ["etag", "lastModified"]) {
      test(`is downloaded from each of them once, by its ${validator}`, async () => {
        for (let visits = 0; visits < 12; visits++) {
          turnTo(visits % 3, validator);
          await assertLoads(FIRST);
        }
        assert.equal(server.sentBytes, 3 * SIZE);
        turnTo(0, validator);
        sent();
        await assertLoads(FIRST);
        assert.deepEqual(sent(), ["HEAD bytes=0-"]);
      });
    }

    test("is updated when the bytes have changed, also back to what they were", async () => {
      for (const number of [0, 1, 0]) {
        turnTo(number, "etag");
        await assertLoads(FIRST);
      }
      turnTo(2, "etag");
      server.bytes = SECOND;
      await assertLoads(SECOND);
      turnTo(0, "etag");
      server.bytes = FIRST;
      await assertLoads(FIRST);
    });
  });

  test("that is damaged is repaired by fetching only the damaged chunk", async () => {
    await assertLoads(FIRST);
    storedFile(".data").bytes[3 * CHUNK + 17] ^= 1;
    sent();
    const { warnings } = await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-", `GET bytes=${3 * CHUNK}-${4 * CHUNK - 1}`]);
    assert.match(warnings.join(), /is damaged \(bytes 24576 to 32767\); it was fetched again/);
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
  });

  test("whose hash is damaged is also repaired", async () => {
    await assertLoads(FIRST);
    storedFile(".hashes").bytes[40] ^= 1;
    await assertLoads(FIRST);
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
  });

  test("is repaired from a server without ranges", async () => {
    server.ranges = false;
    await assertLoads(FIRST);
    storedFile(".data").bytes[3 * CHUNK + 17] ^= 1;
    await assertLoads(FIRST);
    await assertLoads(FIRST);
  });

  test("that is damaged is never used before it is repaired", async () => {
    await assertLoads(FIRST);
    storedFile(".data").bytes[3 * CHUNK + 17] ^= 1;
    server.nextFault = () => ({ kind: FAULTS.refuse });
    await assertFails(/is damaged \(bytes 24576 to 32767\) and could not be repaired: no answer/);
    server.nextFault = (_, number) => {
      if (number >= server.requests.length - 1) server.bytes = SECOND;
    };
    server.requests.length = 0;
    await assertFails(/the server has another version now: load the model again/);
    await assertLoads(SECOND);
  });

  test("whose note, data or hashes are truncated is downloaded again", async () => {
    for (const ending of [".json", ".data", ".hashes"]) {
      await assertLoads(FIRST);
      const file = storedFile(ending);
      file.resize(file.size >> 1);
      await assertLoads(FIRST);
    }
  });

  test("of an earlier release is removed", async () => {
    const tab = browser.openTab();
    await browser.run(
      tab.run(async () => {
        const root = await navigator.storage.getDirectory();
        const folder = await root.getDirectoryHandle("inpage-models", { create: true });
        for (const name of [`${"0a".repeat(16)}.gguf`, `${"0a".repeat(16)}.json`, "other"]) {
          await folder.getFileHandle(name, { create: true });
        }
      }),
    );
    await assertLoads(FIRST);
    const names = [...browser.root.entries.get("inpage-models").entries.keys()];
    assert.equal(names.length, 2);
    assert.equal(names[0], "other");
  });
});

describe("an update", () => {
  beforeEach(async () => {
    await assertLoads(FIRST);
    Object.assign(server, { bytes: SECOND, etag: '"two"' });
    sent();
  });

  test("replaces the stored version", async () => {
    await assertLoads(SECOND);
    await assertLoads(SECOND);
    const [entry] = await browser.run(browser.openTab().run(listEntries));
    assert.ok(entry.occupiedBytes < 2 * SIZE, "only one version is kept");
  });

  test("that is a web page leaves the stored version in use", async () => {
    for (const kind of [FAULTS.page, FAULTS.pageInDisguise]) {
      server.nextFault = ({ method }) => (method === "GET" ? { kind } : undefined);
      const { warnings } = await assertLoads(FIRST);
      assert.match(warnings.join(), /web page.*The stored copy of .* is used/);
      server.nextFault = () => ({ kind });
      await assertLoads(FIRST);
    }
    server.nextFault = () => undefined;
    await assertLoads(SECOND);
  });

  test("that breaks off leaves the stored version in use", async () => {
    let isCut = false;
    server.nextFault = ({ method }) => {
      if (method === "HEAD") return undefined;
      const fault = isCut ? { kind: FAULTS.refuse } : { kind: FAULTS.cut, at: 3 * CHUNK };
      isCut = true;
      return fault;
    };
    const { warnings } = await assertLoads(FIRST);
    assert.match(warnings.join(), /The stored copy of .* is used/);
    server.nextFault = () => undefined;
    sent();
    await assertLoads(SECOND);
    assert.deepEqual(sent(), ["HEAD bytes=0-", `GET bytes=${3 * CHUNK}-`]);
  });

  test("whose tab is killed at any write leaves a version that works", async () => {
    for (let writes = 1; ; writes++) {
      const tab = browser.openTab();
      tab.writesToLive = writes;
      const { killed } = await browser.run(load(tab, server));
      server.nextFault = () => ({ kind: FAULTS.refuse });
      const { bytes, error } = await visit();
      const good = [FIRST, SECOND].find((version) => bytes && Buffer.compare(bytes, version) === 0);
      assert.ok(good, `killed at write ${writes}: ${error?.stack}`);
      server.nextFault = () => undefined;
      if (!killed) break;
    }
    await assertLoads(SECOND);
  });
});

describe("a download whose tab is killed", () => {
  test("at any write continues where it was, and at most a chunk is sent twice", async () => {
    let kills = 0;
    for (let writes = 1; ; writes += 2) {
      const tab = browser.openTab();
      tab.writesToLive = writes % 9;
      const { killed } = await browser.run(load(tab, server));
      if (!killed) break;
      kills += 1;
      assert.ok(kills < 100);
    }
    assert.ok(kills >= 4, `${kills} kills`);
    assert.ok(server.sentBytes <= SIZE + kills * (CHUNK + PIECE), `${server.sentBytes} bytes sent`);
    await assertLoads(FIRST);
  });

  test("does not trust what was stored before", async () => {
    failNext({ kind: FAULTS.cut, at: 4 * CHUNK }, ...Array(5).fill({ kind: FAULTS.refuse }));
    await assertFails(/no answer/);
    const [folder] = browser.root.entries.get("inpage-models").entries.values();
    const [, data] = [...folder.entries].find(([name]) => name.endsWith(".data"));
    data.bytes[CHUNK + 1] ^= 4;
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), [`GET bytes=${CHUNK}-`]);
  });
});

describe("a hash of the whole file", () => {
  test("detects bits that were flipped in transit, and nothing is stored", async () => {
    for (const cache of [true, false]) {
      failNext({ kind: FAULTS.flip, at: 2 * CHUNK + 3 });
      await assertFails(/has the SHA-256 [0-9a-f]{64}, but expected is/, {
        sha256: hexOf(FIRST),
        cache,
      });
      await assertLoads(FIRST, { sha256: hexOf(FIRST), cache });
    }
  });

  test("that the server states is also checked", async () => {
    server.linkedEtag = `"${hexOf(FIRST)}"`;
    failNext({ kind: FAULTS.flip, at: 5 });
    await assertFails(/the server states/);
    await assertLoads(FIRST);
  });

  test("that was verified makes the request for the version unnecessary", async () => {
    const sha256 = hexOf(FIRST);
    await assertLoads(FIRST, { sha256 });
    sent();
    await assertLoads(FIRST, { sha256 });
    assert.deepEqual(sent(), []);
  });

  test("is computed for a file that was stored without one", async () => {
    await assertLoads(FIRST);
    sent();
    await assertLoads(FIRST, { sha256: hexOf(FIRST) });
    assert.deepEqual(sent(), []);
    server.bytes = SECOND;
    server.etag = '"two"';
    await assertLoads(SECOND, { sha256: hexOf(SECOND) });
  });
});

describe("storage that is too small", () => {
  test("is detected before the download, and the bytes are sent once", async () => {
    browser.quotaBytes = 2 * CHUNK;
    const { storage } = await assertLoads(FIRST);
    assert.equal(storage.length, 1);
    assert.equal(storage[0].storage, "none");
    assert.match(storage[0].reason, /the file needs 0.1 MB of storage .* are missing/);
    assert.equal(server.sentBytes, SIZE);
  });

  test("that fills up is not filled again, and the bytes are sent once", async () => {
    browser.quotaBytes = 3 * CHUNK;
    // The browser's numbers are an estimate.
    navigator.storage.estimate = async () => ({});
    const { storage, warnings } = await assertLoads(FIRST);
    assert.equal(storage.at(-1).storage, "memory");
    assert.match(warnings.join(), /is not kept for the next visit: .*full/);
    assert.equal(server.sentBytes, SIZE);
  });

  const storedBytes = () => {
    const folders = browser.root.entries.get("inpage-models").entries.values();
    const files = [...folders].flatMap((folder) => [...folder.entries]);
    const parts = files.filter(([name]) => /\.(data|hashes|json)$/.test(name));
    return parts.reduce((sum, [, { size }]) => sum + size, 0);
  };

  test("keeps no part of the file once it is loaded", async () => {
    browser.quotaBytes = 3 * CHUNK;
    navigator.storage.estimate = async () => ({});
    const loaded = new AbortController();
    const { bytes, storage } = await visit({ source: { reading: loaded.signal } });
    assert.equal(Buffer.compare(bytes, FIRST), 0);
    assert.equal(storage.at(-1).storage, "memory");
    assert.ok(storedBytes() >= CHUNK);
    const tab = browser.openTab();
    loaded.abort();
    await browser.run(tab.run(() => tab.clock.sleep(1, new AbortController().signal)));
    assert.equal(storedBytes(), 0);
  });

  test("keeps no part of the file that a tab left", async () => {
    failNext({ kind: FAULTS.cut, at: 3 * CHUNK }, { kind: FAULTS.status, status: 403 });
    await assertFails(/answered 403/);
    assert.ok(storedBytes() >= 3 * CHUNK);
    browser.quotaBytes = browser.usedBytes + CHUNK;
    const { storage } = await assertLoads(FIRST);
    assert.match(storage[0].reason, /are missing/);
    assert.equal(storedBytes(), 0);
  });

  describe("and storage that is cleared in mid-download", () => {
    const after = (ms) => new Promise((resolve) => browser.after(ms, resolve));
    beforeEach(() => {
      failNext({ kind: FAULTS.stall, at: 4 * CHUNK + PIECE });
      browser.after(5000, () => browser.clearStorage());
    });

    test("are told apart, and the engine gets the rest of what it has read", async () => {
      const { storage } = await assertLoads(FIRST, { mostBytes: 100 });
      assert.equal(storage.at(-1).storage, "memory");
      assert.match(storage.at(-1).reason, /storage for this site was cleared in the meantime$/);
      assert.equal(server.sentBytes, SIZE);
      const again = await assertLoads(FIRST);
      assert.equal(again.storage.at(-1).storage, "opfs");
    });

    test("are told apart, where the engine has not read what is lost", async () => {
      const onRead = (offset) => (offset < CHUNK ? after(6000) : undefined);
      await assertFails(/cannot be read any more .*cleared in the meantime.*load the model again/, {
        onRead,
      });
      await assertLoads(FIRST);
    });
  });

  test("does not lose the stored version to an update", async () => {
    await assertLoads(FIRST);
    browser.quotaBytes = browser.usedBytes + CHUNK;
    Object.assign(server, { bytes: SECOND, etag: '"two"' });
    await assertLoads(SECOND);
    server.nextFault = () => ({ kind: FAULTS.refuse });
    await assertLoads(FIRST);
  });
});

describe("several tabs", () => {
  test("list what is stored while another one deletes it", async () => {
    for (let steps = 0; steps < 40; steps++) {
      browser = new MemoryBrowser(1, steps % 2 === 0 ? "opfs" : "cache");
      browser.install();
      await assertLoads(FIRST);
      const [one, other] = [browser.openTab(), browser.openTab()];
      const [{ name }] = await browser.run(one.run(() => listEntries()));
      const list = one.run(() => listEntries());
      const remove = other.run(async () => {
        for (let step = 0; step < steps; step++) await undefined;
        return removeEntry(name);
      });
      const [found] = await browser.run(Promise.all([list, remove]));
      assert.ok(found.length <= 1);
    }
  });

  test("share one download, and the tab that waits sees its progress", async () => {
    failNext({ kind: FAULTS.stall, at: 3 * CHUNK });
    const loads = [1, 2].map(() => load(browser.openTab(), server));
    const [owner, other] = await browser.run(Promise.all(loads));
    for (const { bytes } of [owner, other]) assert.equal(Buffer.compare(bytes, FIRST), 0);
    assert.ok(owner.progress.length > 0);
    assert.equal(other.progress.length, 0);
    assert.deepEqual(other.waiting.at(-1), [3 * CHUNK, SIZE]);
    assert.equal(server.sentBytes, SIZE);
  });

  test("a tab that is closed as soon as it has read the model leaves a model for visits offline", async () => {
    for (const storage of ["opfs", "cache"]) {
      browser = new MemoryBrowser(1, storage);
      browser.install();
      server.nextFault = () => undefined;
      const tab = browser.openTab();
      const onRead = (offset) => offset === SIZE && tab.kill();
      assert.deepEqual((await browser.run(load(tab, server, { onRead }))).killed, true);
      server.nextFault = () => ({ kind: FAULTS.refuse });
      await assertLoads(FIRST);
    }
  });

  for (const what of ["killed", "frozen"]) {
    test(`take over from one that is ${what}`, async () => {
      server.nextFault = () => ({ kind: FAULTS.stall, at: 3 * CHUNK + 100 });
      const [first, second] = [browser.openTab(), browser.openTab()];
      const loads = [first, second].map((tab) => load(tab, server));
      browser.after(5000, () => {
        server.nextFault = () => undefined;
        if (what === "killed") first.kill();
        else first.freeze();
      });
      const start_ms = browser.now_ms;
      const { bytes, error } = await browser.run(loads[1]);
      if (error) throw error;
      assert.ok(browser.now_ms - start_ms < 60_000, "it takes less than a minute");
      assert.equal(Buffer.compare(bytes, FIRST), 0);
      assert.ok(server.sentBytes <= SIZE + CHUNK, `${server.sentBytes} bytes sent`);
      if (what === "killed") return;
      first.thaw();
      const thawed = await browser.run(loads[0]);
      assert.equal(Buffer.compare(thawed.bytes ?? Buffer.alloc(0), FIRST), 0, thawed.error?.stack);
      await assertLoads(FIRST);
    });
  }
});
