//! Seeded schedules of faults with mirrors: a load gives one complete version or a clear error, whatever each server does. One
//! good server is enough. `INPAGE_SEED=N` runs one schedule.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openMirrored } from "../../www/dist/model_source/sources/mirrors.js";
import { urlSource } from "../../www/dist/model_source/sources/url.js";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { MemoryBrowser } from "./memory_browser.mjs";
import { randomBytes, seeded } from "./random.mjs";

const SCHEDULES = 200;
const CHUNK = 8 * 1024;
const URLS = ["https://a.example/m.gguf", "https://b.example/m.gguf", "https://c.example/m.gguf"];
/** All faults but `flip`, which only a hash of the file detects. */
const KINDS = Object.values(FAULTS).filter((kind) => kind !== FAULTS.flip);

function randomFault(random, size) {
  const kind = random.pick(KINDS);
  if (kind === FAULTS.status) return { kind, status: random.pick([403, 404, 429, 500, 503]) };
  return { kind, at: random.below(size + 1) };
}

async function readAll(source, random) {
  const bytes = new Uint8Array(source.size);
  for (let offset = 0; offset < source.size; ) {
    const length = Math.min(1 + random.below(CHUNK), source.size - offset);
    bytes.set(await source.read(offset, length), offset);
    offset += length;
  }
  return bytes;
}

/** One load in a new tab: `{ bytes }` or `{ error }`. */
async function load(browser, servers, random, cache) {
  const tab = browser.openTab();
  const { signal } = new AbortController();
  const work = async () => {
    const open = (url) => {
      const fetchFile = tab.fetchFile(servers[URLS.indexOf(url)], random.pick([700, 3000, CHUNK]));
      const sizes = { chunkBytes: CHUNK, windowBytes: 2 * CHUNK };
      const quiet = { onBytes() {}, onWarning() {} };
      const file = { url, key: URLS[0], sha256: undefined, fetchFile };
      return urlSource(file, { cache, signal, clock: tab.clock, ...quiet, ...sizes });
    };
    try {
      return { bytes: await readAll(await openMirrored(URLS, open, signal), random) };
    } catch (error) {
      return { error };
    }
  };
  const result = await browser.run(tab.run(work));
  tab.kill();
  return result;
}

async function schedule(seed) {
  const random = seeded(seed);
  const browser = new MemoryBrowser(seed + 1);
  browser.install();
  const first = randomBytes(1 + random.below(9 * CHUNK), seed);
  const second = Buffer.from(first);
  // The smallest difference, at a random place.
  second[random.below(second.length)] ^= 1;
  const servers = URLS.map((_, index) => {
    const bytes = random.chance(0.75) ? first : second;
    const isSecond = bytes === second ? "second" : "first";
    const etag = random.chance(0.8) ? `"${isSecond} on ${index}"` : undefined;
    return new FaultServer({ bytes, etag, ranges: random.chance(0.8) });
  });
  const rates = URLS.map(() => random.pick([0, 0.3, 0.7, 1]));
  const isVersion = (bytes) => [first, second].some((one) => Buffer.compare(bytes, one) === 0);
  for (let session = 0; session < 3; session++) {
    for (const [index, server] of servers.entries()) {
      server.nextFault = () =>
        random.chance(rates[index]) ? randomFault(random, first.length) : undefined;
    }
    const { bytes, error } = await load(browser, servers, random, random.chance(0.8));
    if (bytes) assert.ok(isVersion(bytes), `session ${session}: wrong bytes`);
    else {
      assert.ok(error instanceof TypeError, error.stack);
      assert.ok(
        URLS.every((url) => error.message.includes(url)),
        `not every server is named: ${error.stack}`,
      );
    }
  }
  // One good server is enough, wherever it is in the list.
  const good = random.below(URLS.length);
  for (const [index, server] of servers.entries()) {
    const down = { kind: FAULTS.status, status: 503 };
    server.nextFault = () => (index === good ? undefined : down);
  }
  const { bytes, error } = await load(browser, servers, random, true);
  if (error) throw error;
  assert.ok(isVersion(bytes), "wrong bytes of the good server");
}

test(`${SCHEDULES} schedules with mirrors end in one version or a clear error`, async () => {
  const only = process.env.INPAGE_SEED;
  const seeds = only ? [Number(only)] : Array.from({ length: SCHEDULES }, (_, seed) => seed);
  const failures = [];
  for (const seed of seeds) {
    try {
      await schedule(seed);
    } catch (error) {
      failures.push(`seed ${seed}: ${error.stack}`);
    }
  }
  const shown = failures.slice(0, 5).join("\n");
  assert.equal(failures.length, 0, `${failures.length} schedules failed\n${shown}`);
});
