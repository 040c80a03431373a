//! 1,000 seeded schedules of faults of server, network, storage and tabs, and 300 in a browser that has the Cache API only. Every load
//! gives the right bytes or a clear error, and the next load without faults gives the right bytes. `INPAGE_SEED=N` runs one schedule,
//! `INPAGE_SCHEDULES=N` runs N.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { CHUNK, URL_OF_MODEL, hexOf, load } from "./loading.mjs";
import { MemoryBrowser } from "./memory_browser.mjs";
import { randomBytes, seeded } from "./random.mjs";

/** The number of schedules that run, by the storage that the browser has. */
const SCHEDULES = { opfs: 1000, cache: 300 };

/** The file before and after it changes on the server. */
function versions(random, seed) {
  const size = random.pick([
    1,
    100,
    CHUNK - 1,
    CHUNK,
    4 * CHUNK,
    CHUNK + random.below(5 * CHUNK),
    CHUNK + random.below(9 * CHUNK),
  ]);
  const first = randomBytes(size, seed);
  const second = Buffer.from(first);
  // The changes that are hardest to detect keep the size and most bytes.
  const change = random.below(4);
  if (change === 0) return [first, randomBytes(size, seed + 7919)];
  if (change === 1) return [first, Buffer.concat([first, randomBytes(100, seed + 1)])];
  if (change === 2) second[random.below(size)] ^= 1;
  if (change === 3) second[size - 1] ^= 1;
  return [first, second];
}

function validators(kind, version) {
  const date = `Sun, 22 Nov 2026 0${version}:00:00 GMT`;
  const etag = { strong: `"v${version}"`, weak: `W/"v${version}"`, both: `"v${version}"` }[kind];
  const lastModified = kind === "date" || kind === "both" ? date : undefined;
  return { etag, lastModified };
}

/** Faults that a hash of the file finds, and all others. */
const BLIND = [FAULTS.flip];
const OTHERS = Object.values(FAULTS).filter((kind) => !BLIND.includes(kind));

function randomFault(random, size, hasHash) {
  const kind = random.pick(hasHash ? [...OTHERS, ...BLIND] : OTHERS);
  const at = random.below(size + 1);
  if (kind === FAULTS.status) {
    const status = random.pick([408, 425, 429, 500, 502, 503, 504, 403, 404]);
    const retryAfter = random.pick([
      undefined,
      0,
      3,
      100_000,
      "Sun, 22 Nov 2026 00:01:00 GMT",
      "soon",
    ]);
    return { kind, status, retryAfter };
  }
  if (kind === FAULTS.stall && random.chance(0.5)) return { kind };
  return { kind, at };
}

async function schedule(seed, storage) {
  const random = seeded(seed);
  const browser = new MemoryBrowser(seed + 1, storage);
  browser.install();
  const [first, second] = versions(random, seed);
  const kind = random.pick(["strong", "strong", "both", "date", "weak", "none", "none"]);
  const hash = random.pick(["none", "none", "none", "expected", "stated"]);
  const server = new FaultServer({
    bytes: first,
    ...validators(kind, 1),
    exposeHeaders: random.chance(0.8),
    ranges: random.chance(0.8),
    hideLength: random.chance(0.15),
  });
  if (hash === "stated") server.linkedEtag = `"${hexOf(first)}"`;
  const rate = random.pick([0, 0.2, 0.5, 0.9]);
  const changesAt = random.chance(0.4) ? random.below(12) : Number.POSITIVE_INFINITY;
  server.nextFault = (_, number) => {
    if (number >= changesAt && server.bytes === first) {
      Object.assign(server, { bytes: second, ...validators(kind, 2) });
      if (hash === "stated") server.linkedEtag = `"${hexOf(second)}"`;
    }
    // With a stated hash, the loader may not know it yet, so bits are flipped only with an expected hash.
    return random.chance(rate) ? randomFault(random, first.length, hash === "expected") : undefined;
  };
  const expected = () => (hash === "expected" ? hexOf(server.bytes) : undefined);
  if (random.chance(0.2)) browser.quotaBytes = 6000 + random.below(first.length * 3);

  const check = ({ bytes, error, killed }, what) => {
    if (killed) return;
    if (error) {
      assert.ok(
        error instanceof TypeError && error.message.includes(URL_OF_MODEL),
        `${what}: ${error.stack}`,
      );
      return;
    }
    const isServed = Buffer.compare(bytes, first) === 0 || Buffer.compare(bytes, second) === 0;
    assert.ok(isServed, `${what}: wrong bytes`);
  };

  const sessions = 1 + random.below(4);
  for (let session = 0; session < sessions; session++) {
    const count = random.pick([1, 1, 2, 3]);
    const cache = random.chance(0.85);
    const tabs = Array.from({ length: count }, () => browser.openTab());
    for (const tab of tabs) {
      if (random.chance(0.25)) tab.writesToLive = 1 + random.below(30);
      else if (random.chance(0.15)) browser.after(random.below(60_000), () => tab.kill());
      else if (count > 1 && random.chance(0.2)) {
        browser.after(random.below(20_000), () => tab.freeze());
        browser.after(20_000 + random.below(200_000), () => tab.thaw());
      }
    }
    const options = () => {
      const pieceBytes = random.pick([700, 3000, CHUNK, 5 * CHUNK]);
      // Reads that are longer than a window bypass it.
      const mostBytes = random.pick([CHUNK, 3 * CHUNK]);
      return { cache, sha256: expected(), pieceBytes, mostBytes };
    };
    const loads = tabs.map((tab) => load(tab, server, options()));
    for (const [index, result] of (await browser.run(Promise.all(loads))).entries()) {
      check(result, `session ${session}, tab ${index}`);
    }
    for (const tab of tabs) tab.kill();
    if (random.chance(0.2)) browser.damage();
  }
  server.nextFault = () => undefined;
  const after = () => load(browser.openTab(), server, { sha256: expected() });
  let last = await browser.run(after());
  // Damage may be detected while the model is read, when it is too late to use another version.
  if (last.error?.message.includes("load the model again")) last = await browser.run(after());
  if (last.error) throw last.error;
  const isRight = Buffer.compare(last.bytes, server.bytes) === 0;
  // Without validators, a change that keeps the size may go unnoticed.
  const isHidden = kind === "none" || (!server.exposeHeaders && kind !== "date" && kind !== "both");
  const isUnnoticed = isHidden && hash !== "expected" && Buffer.compare(last.bytes, first) === 0;
  assert.ok(isRight || isUnnoticed, "the load without faults gives wrong bytes");
  return server.requests.length;
}

for (const [storage, count] of Object.entries(SCHEDULES)) {
  test(`schedules of faults end in the right bytes or a clear error, stored in ${storage}`, async () => {
    const { INPAGE_SEED: only, INPAGE_SCHEDULES: most = count } = process.env;
    const seeds = only ? [Number(only)] : Array.from({ length: Number(most) }, (_, seed) => seed);
    const failures = [];
    for (const seed of seeds) {
      try {
        await schedule(seed, storage);
      } catch (error) {
        failures.push(`seed ${seed}: ${error.stack}`);
      }
    }
    assert.equal(
      failures.length,
      0,
      `${failures.length} schedules failed\n${failures.slice(0, 5).join("\n")}`,
    );
  });
}
