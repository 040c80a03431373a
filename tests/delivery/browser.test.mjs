//! Downloads in Chromium, with its network, file system, locks and quota. The fake engine reads all of the model and reports
//! its digest.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { startHarness } from "../browser/harness.mjs";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { startKillable } from "./killable_chromium.mjs";
import { randomBytes, seeded } from "./random.mjs";

const MIB = 1 << 20;
const CHUNK = 4 * MIB;
const SIZE = 9 * MIB + 12_345;
const FIRST = randomBytes(SIZE, 1);
const SECOND = randomBytes(SIZE, 2);
/** The digest in the form in which the fake engine reports it. */
const digestOf = (bytes) =>
  [...createHash("sha256").update(bytes).digest()].map((b) => b.toString(16)).join(",");

let harness;
let page;
let server;

before(async () => {
  harness = await startHarness();
});
after(() => harness?.close());
beforeEach(async () => {
  page = await harness.open();
  server = await new FaultServer({ bytes: FIRST, etag: '"one"' }).listen();
});
afterEach(async () => {
  await page.context().close();
  await server.close();
});

/** Loads the model. Returns the digest of what the engine read, or the error, and the messages of the console. */
async function load({ model = `${server.origin}/m.gguf`, ...options } = {}, tab = page) {
  const warnings = [];
  const onConsole = (message) => warnings.push(message.text());
  tab.on("console", onConsole);
  const result = await tab.evaluate(
    async ({ model, options }) => {
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
    { model, options },
  );
  tab.off("console", onConsole);
  return { ...result, warnings: warnings.join("\n") };
}

/** Resolves when `isDone()`. */
async function pollUntil(isDone) {
  while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function assertLoads(bytes, options, tab) {
  const result = await load(options, tab);
  assert.equal(result.digest, digestOf(bytes), result.message);
  return result;
}

const sent = () => server.requests.splice(0).map(({ method, range }) => `${method} ${range}`);

/** Changes a byte of the file in the cache whose name ends with `ending`. */
const damage = (ending, offset) =>
  page.evaluate(
    async ([ending, offset]) => {
      const root = await navigator.storage.getDirectory();
      const all = await root.getDirectoryHandle("inpage-models");
      for await (const entry of all.values()) {
        for await (const [name, handle] of entry.entries()) {
          if (!name.endsWith(ending)) continue;
          const byte = new Uint8Array(
            await (await handle.getFile()).slice(offset, offset + 1).arrayBuffer(),
          );
          const writable = await handle.createWritable({ keepExistingData: true });
          await writable.write({
            type: "write",
            position: offset,
            data: byte.map((value) => value ^ 16),
          });
          await writable.close();
        }
      }
    },
    [ending, offset],
  );

describe("in Chromium", () => {
  test("a chunk that is damaged in the storage is fetched again, alone", async () => {
    await assertLoads(FIRST);
    await damage(".data", CHUNK + 5);
    sent();
    const { warnings } = await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-", `GET bytes=${CHUNK}-${2 * CHUNK - 1}`]);
    assert.match(warnings, /is damaged \(bytes 4194304 to 8388607\); it was fetched again/);
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
  });

  test("lies about ranges never reach the model", async () => {
    for (const kind of ["otherRange", "multipart", "encodedPart", "noContentRange", "short"]) {
      for (const cache of [true, false]) {
        const faults = [{ kind: FAULTS[kind] }];
        server.nextFault = () => faults.shift();
        await assertLoads(FIRST, {
          model: { url: `${server.origin}/${kind}-${cache}.gguf`, cache },
        });
      }
    }
  });

  test("a response that breaks off is resumed, also from another origin that exposes no headers", async () => {
    server.exposeHeaders = false;
    server.lastModified = "Sat, 21 Nov 2026 00:00:00 GMT";
    const faults = [
      { kind: FAULTS.cut, at: 5 * MIB },
      { kind: FAULTS.status, status: 503, retryAfter: 1 },
    ];
    server.nextFault = () => faults.shift();
    await assertLoads(FIRST);
  });

  test("redirects are followed at each attempt", async () => {
    server.redirectFrom = "/from.gguf";
    server.redirectTo = "/m.gguf";
    const faults = [{ kind: FAULTS.cut, at: 5 * MIB }];
    server.nextFault = () => faults.shift();
    await assertLoads(FIRST, { model: `${server.origin}/from.gguf` });
    assert.equal(sent().length, 2);
  });

  test("a stored file is revalidated without its bytes", async () => {
    await assertLoads(FIRST);
    const { sentBytes } = server;
    await assertLoads(FIRST);
    assert.equal(server.sentBytes, sentBytes);
  });

  test("an update that breaks off, or is a web page, leaves the stored version in use", async () => {
    await assertLoads(FIRST);
    Object.assign(server, { bytes: SECOND, etag: '"two"' });
    const faults = [
      undefined,
      { kind: FAULTS.cut, at: 5 * MIB },
      { kind: FAULTS.status, status: 403 },
    ];
    server.nextFault = () => faults.shift();
    const { warnings } = await assertLoads(FIRST);
    assert.match(warnings, /answered 403.*The stored copy of .* is used/);
    server.nextFault = () => ({ kind: FAULTS.page });
    assert.match((await assertLoads(FIRST)).warnings, /answered with a web page/);
    server.nextFault = () => undefined;
    await assertLoads(SECOND);
  });

  test("a hash detects bits that were flipped in transit", async () => {
    const url = `${server.origin}/m.gguf`;
    const sha256 = createHash("sha256").update(FIRST).digest("hex");
    const faults = [{ kind: FAULTS.flip, at: 8 * MIB }];
    server.nextFault = () => faults.shift();
    assert.match(
      (await load({ model: { url, sha256 } })).message,
      /has the SHA-256 .* but expected is/,
    );
    await assertLoads(FIRST, { model: { url, sha256 } });
    sent();
    await assertLoads(FIRST, { model: { url, sha256 } });
    assert.deepEqual(sent(), []);
  });

  test("storage that fills up is reported with the missing size, and no byte is sent twice", async () => {
    const client = await page.context().newCDPSession(page);
    const { origin } = harness;
    await client.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 5 * MIB });
    const { storage, storageReason, warnings } = await assertLoads(FIRST);
    // Chromium does not tell pages their real quota, so the engine notices only when the storage is full.
    assert.equal(storage, "memory");
    assert.match(storageReason, /is full: \d.* MB of 9.4 MB are missing/);
    assert.match(warnings, /is not kept for the next visit/);
    assert.equal(server.sentBytes, SIZE);
    // The part that was stored is removed when it is not read any more.
    await pollUntil(() => page.evaluate(async () => (await inpage.cache.size()).files === 0));
  });

  test("storage that is cleared in mid-download is reported as such", async () => {
    server.pause_ms = 20;
    const client = await page.context().newCDPSession(page);
    const loading = load();
    await pollUntil(() => server.sentBytes > 5 * MIB);
    await client.send("Storage.clearDataForOrigin", {
      origin: harness.origin,
      storageTypes: "file_systems",
    });
    const { digest, message, storageReason } = await loading;
    // The load fails only if the engine has not read yet what is lost.
    if (digest === undefined) assert.match(message, /m\.gguf .*cleared in the meantime.*again/);
    else assert.match(storageReason, /cleared in the meantime/);
    server.pause_ms = 0;
    const again = await assertLoads(FIRST);
    assert.equal(again.storage, "opfs");
  });

  test("a tab that waits shows the other tab's progress, and continues when that tab is closed", async () => {
    server.pause_ms = 20;
    const second = await harness.open(page.context());
    const url = `${server.origin}/m.gguf`;
    page
      .evaluate((url) => {
        startFake({
          model: url,
          onProgress: (event) => {
            window.last = event;
          },
        });
      }, url)
      .catch(() => {});
    await page.waitForFunction(() => window.last?.loadedBytes > 5 * 1024 * 1024);
    const loading = second.evaluate(async (url) => {
      window.phases = [];
      const onProgress = ({ phase, loadedBytes }) => window.phases.push([phase, loadedBytes]);
      const engine = await startFake({ model: url, onProgress });
      return [(await engine.info()).sourceDigest, window.phases];
    }, url);
    await second.waitForFunction(() => window.phases?.some(([, bytes]) => bytes > 5 * 1024 * 1024));
    // While a tab downloads, others can list what is stored.
    const [entry] = await second.evaluate(() => inpage.cache.list());
    assert.equal(entry.complete, false);
    assert.ok(entry.storedBytes >= CHUNK);
    await page.close({ runBeforeUnload: false });
    server.pause_ms = 0;
    const [digest, phases] = await loading;
    assert.equal(digest, digestOf(FIRST));
    assert.equal(phases[0][0], "waiting");
    assert.ok(server.sentBytes <= SIZE + CHUNK + 2 * MIB, `${server.sentBytes} bytes sent`);
    page = second;
  });
});

test("killing the browser 20 times costs at most a chunk each, and ends in one verified file", async () => {
  const KILLS = 20;
  const random = seeded(11);
  const bytes = randomBytes(60 * MIB + 777, 3);
  // Slow enough that few bytes are in flight when the browser is killed.
  const big = await new FaultServer({ bytes, etag: '"big"', pause_ms: 7 }).listen();
  const chromium = startKillable(harness.origin);
  try {
    // What the tab has received says when to kill: on a busy machine the server is far ahead of it.
    let enough = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const tab = await chromium.open();
      await tab.evaluate((url) => {
        window.received = 0;
        const onProgress = ({ loadedBytes }) => {
          window.received = loadedBytes;
        };
        startFake({ model: url, onProgress });
      }, `${big.origin}/m.gguf`);
      enough = Math.min(enough + random.below(5 * MIB), bytes.length - CHUNK);
      await tab.waitForFunction((enough) => window.received >= enough, enough, { polling: 5 });
      await chromium.kill();
    }
    big.pause_ms = 0;
    const tab = await chromium.open();
    const { digest, message } = await load({ model: `${big.origin}/m.gguf` }, tab);
    assert.equal(digest, digestOf(bytes), message);
    const twice = big.sentBytes - bytes.length;
    console.log(
      `${KILLS} kills: ${(twice / MIB).toFixed(1)} of ${(bytes.length / MIB).toFixed(1)} MiB were sent twice`,
    );
    assert.ok(twice <= KILLS * CHUNK, `${twice} bytes sent twice`);
    // The kills came during the download, and most of it was kept.
    assert.ok(
      big.requests.some(({ range }) => Number(/\d+/.exec(range)) >= 16 * MIB),
      "never resumed",
    );
    const { sentBytes } = big;
    assert.equal((await load({ model: `${big.origin}/m.gguf` }, tab)).digest, digestOf(bytes));
    assert.equal(big.sentBytes, sentBytes);
    const files = await tab.evaluate(() => inpage.cache.list());
    assert.equal(files.length, 1);
    assert.ok(files[0].complete && files[0].occupiedBytes < bytes.length + MIB);
  } finally {
    await chromium.close();
    await big.close();
  }
});
