//! A browser without the origin private file system, in memory: models are kept in the Cache API, with the same promises. Random
//! schedules of faults are in schedules.test.mjs, Chromium in sources_browser.test.mjs.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { Intake } from "../../www/dist/model_source/transfer/intake.js";
import { BlobStore } from "../../www/dist/model_source/store/chunk_store.js";
import { listEntries } from "../../www/dist/model_source/store/cache_layout.js";
import { readKernels, writeKernels } from "../../www/dist/model_source/store/kernel_note.js";
import { ModelCache } from "../../www/dist/cache/cache.js";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { CHUNK, PIECE, URL_OF_MODEL, load } from "./loading.mjs";
import { MemoryBrowser } from "./memory_browser.mjs";
import { randomBytes } from "./random.mjs";

const SIZE = 6 * CHUNK + 1234;
const FIRST = randomBytes(SIZE, 1);
const SECOND = randomBytes(SIZE, 2);

let browser;
let server;

beforeEach(() => {
  browser = new MemoryBrowser(1, "cache");
  browser.install();
  server = new FaultServer({ bytes: FIRST, etag: '"one"' });
});

const visit = (options) => browser.run(load(browser.openTab(), server, options));
const inTab = (work) => browser.run(browser.openTab().run(work));

async function assertLoads(bytes, options) {
  const result = await visit(options);
  if (result.error) throw result.error;
  assert.equal(Buffer.compare(result.bytes, bytes), 0, "the bytes of the file");
  return result;
}

const sent = () => server.requests.splice(0).map(({ method, range }) => `${method} ${range}`);

/** The responses of the only model, by the end of the name of a file and the number of a part. */
function stored(ending, part) {
  const [responses] = [...browser.caches.caches]
    .filter(([name]) => name.startsWith("inpage-m"))[0]
    .slice(1);
  const url = [...responses.keys()].find((key) => key.endsWith(`${ending}?part=${part}`));
  return { responses, url };
}

describe("without the file system", () => {
  test("a model is kept in the Cache API, and says so", async () => {
    const { storage } = await assertLoads(FIRST);
    assert.deepEqual(
      storage.map((report) => report.storage),
      ["cache"],
    );
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
    assert.equal(server.sentBytes, SIZE);
    assert.equal(browser.root.size, 0);
  });

  test("a chunk is one response", async () => {
    await assertLoads(FIRST);
    const { responses } = stored(".data", 0);
    const chunks = [...responses.keys()].filter((url) => url.includes(".data?part="));
    assert.equal(chunks.length, Math.ceil(SIZE / CHUNK));
  });

  test("a damaged chunk is fetched again, alone", async () => {
    await assertLoads(FIRST);
    const { responses, url } = stored(".data", 3);
    responses.get(url).bytes[17] ^= 1;
    sent();
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-", `GET bytes=${3 * CHUNK}-${4 * CHUNK - 1}`]);
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
  });

  test("a chunk that the storage has lost is fetched again, alone", async () => {
    await assertLoads(FIRST);
    for (const part of [2, 6]) {
      const { responses, url } = stored(".data", part);
      responses.delete(url);
    }
    sent();
    await assertLoads(FIRST);
    const last = `GET bytes=${6 * CHUNK}-${SIZE - 1}`;
    assert.deepEqual(sent(), ["HEAD bytes=0-", `GET bytes=${2 * CHUNK}-${3 * CHUNK - 1}`, last]);
    await assertLoads(FIRST);
    assert.deepEqual(sent(), ["HEAD bytes=0-"]);
  });

  test("a download whose tab is killed at any write continues where it was", async () => {
    let kills = 0;
    for (let writes = 1; ; writes += 2) {
      const tab = browser.openTab();
      tab.writesToLive = 4 + (writes % 17);
      const { killed } = await browser.run(load(tab, server));
      if (!killed) break;
      kills += 1;
      assert.ok(kills < 100);
    }
    assert.ok(kills >= 3, `${kills} kills`);
    assert.ok(
      server.requests.some(({ range }) => Number(/\d+/.exec(range)?.[0]) >= CHUNK),
      "never resumed",
    );
    await assertLoads(FIRST);
  });

  test("an update whose tab is killed at any write leaves a version that works", async () => {
    for (let writes = 1; ; writes++) {
      browser = new MemoryBrowser(writes, "cache");
      browser.install();
      server = new FaultServer({ bytes: FIRST, etag: '"one"' });
      await assertLoads(FIRST);
      Object.assign(server, { bytes: SECOND, etag: '"two"' });
      const tab = browser.openTab();
      tab.writesToLive = writes;
      const { killed } = await browser.run(load(tab, server));
      server.nextFault = () => ({ kind: FAULTS.refuse });
      const { bytes, error } = await visit();
      const isGood = [FIRST, SECOND].some((good) => bytes && Buffer.compare(bytes, good) === 0);
      assert.ok(isGood, `killed at write ${writes}: ${error?.stack}`);
      server.nextFault = () => undefined;
      await assertLoads(SECOND);
      if (!killed) break;
    }
  });

  test("storage that fills up is not filled again, and the bytes are sent once", async () => {
    browser.quotaBytes = 3 * CHUNK;
    // The browser's numbers are an estimate.
    navigator.storage.estimate = async () => ({});
    const { storage } = await assertLoads(FIRST);
    assert.equal(storage.at(-1).storage, "memory");
    assert.equal(server.sentBytes, SIZE);
  });

  for (const what of ["killed", "frozen"]) {
    test(`a tab takes over from one that is ${what}`, async () => {
      server.nextFault = () => ({ kind: FAULTS.stall, at: 3 * CHUNK + 100 });
      const [first, second] = [browser.openTab(), browser.openTab()];
      const loads = [first, second].map((tab) => load(tab, server));
      browser.after(5000, () => {
        server.nextFault = () => undefined;
        if (what === "killed") first.kill();
        else first.freeze();
      });
      const { bytes, error } = await browser.run(loads[1]);
      if (error) throw error;
      assert.equal(Buffer.compare(bytes, FIRST), 0);
      assert.ok(server.sentBytes <= SIZE + CHUNK + PIECE, `${server.sentBytes} bytes sent`);
      if (what === "killed") return;
      first.thaw();
      const thawed = await browser.run(loads[0]);
      assert.equal(Buffer.compare(thawed.bytes ?? Buffer.alloc(0), FIRST), 0, thawed.error?.stack);
      await assertLoads(FIRST);
    });
  }

  test("the cache is listed, measured, pinned, and cleared", async () => {
    await assertLoads(FIRST);
    const cache = new ModelCache();
    const [file] = await inTab(() => cache.list());
    assert.deepEqual(
      [file.key, file.storedBytes, file.complete, file.pinned],
      [URL_OF_MODEL, SIZE, true, false],
    );
    const { files, occupiedBytes } = await inTab(() => cache.size());
    assert.equal(files, 1);
    assert.ok(occupiedBytes >= SIZE && occupiedBytes <= browser.usedBytes);
    await inTab(() => cache.pin(URL_OF_MODEL));
    assert.deepEqual(await inTab(() => cache.clear({ keepPinned: true })), []);
    assert.equal((await inTab(() => cache.list()))[0].pinned, true);
    await inTab(() => cache.unpin(URL_OF_MODEL));
    assert.equal((await inTab(() => cache.list()))[0].pinned, false);
    assert.equal((await inTab(() => cache.delete(URL_OF_MODEL))).length, 1);
    assert.equal(browser.usedBytes, 0, "nothing is left");
    await assertLoads(FIRST);
    assert.equal(server.sentBytes, 2 * SIZE);
  });

  test("a file that is being downloaded is not deleted", async () => {
    failAt(3 * CHUNK);
    const tab = browser.openTab();
    const loading = load(tab, server);
    let refusal;
    browser.after(5000, () => {
      const cache = new ModelCache();
      refusal = browser.openTab().run(() => cache.clear().catch((error) => error));
    });
    await browser.run(loading);
    assert.equal((await refusal).code, "cache_in_use");
    await assertLoads(FIRST);
  });

  test("what was found out about kernels is kept beside the model", async () => {
    await assertLoads(FIRST);
    navigator.userAgent = "test";
    await inTab(() => writeKernels(URL_OF_MODEL, "found", browser.now_ms));
    assert.equal(await inTab(() => readKernels(URL_OF_MODEL, browser.now_ms)), "found");
    assert.equal((await inTab(listEntries)).length, 1);
  });
});

function failAt(at) {
  const faults = [{ kind: FAULTS.stall, at }];
  server.nextFault = () => faults.shift();
}

test("after a difference nothing of the first version can be read", async () => {
  let arrived = 0;
  const intake = new Intake({
    url: URL_OF_MODEL,
    chunkBytes: CHUNK,
    store: new BlobStore(),
    onArrived: () => {
      arrived = intake.readableBytes;
    },
  });
  const version = { etag: null, lastModified: null, sizeBytes: SIZE, sha256: undefined };
  intake.begin(0, version);
  await intake.accept(new Uint8Array(FIRST.subarray(0, 5 * CHUNK)));
  await intake.read(0, CHUNK);
  assert.equal(arrived, 5 * CHUNK);
  // The bytes come once more, and differ after the part that was read.
  const second = new Uint8Array(FIRST);
  second.set(SECOND.subarray(CHUNK), CHUNK);
  intake.begin(0, version);
  await intake.accept(second.subarray(0, 2 * CHUNK));
  assert.equal(arrived, 2 * CHUNK, "readable bytes");
  await intake.accept(second.subarray(2 * CHUNK));
  await intake.finish();
  assert.equal(Buffer.compare(await intake.read(0, SIZE), second), 0);
});
