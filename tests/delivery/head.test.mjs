//! Reading the beginning of a file, as inspection does, from servers with wrong responses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openHead } from "../../www/dist/model_source/sources/head.js";
import { FAULTS, FaultServer } from "./fault_server.mjs";
import { randomBytes } from "./random.mjs";

const BYTES = randomBytes(1 << 20, 5);

/** Reads 600 kB in order, closes the source, and returns the bytes. */
async function readHead(server) {
  const { signal } = new AbortController();
  const head = await openHead(`${server.origin}/m.gguf`, fetch, signal);
  try {
    const parts = [];
    for (let offset = 0; offset < 600_000; offset += 100_000) {
      parts.push(Buffer.from(await head.read(offset, 100_000)));
    }
    return Buffer.concat(parts);
  } finally {
    await head.close();
    // A folder's files are read once more for its vision tower.
    const again = Buffer.from(await head.read(50_000, 100_000));
    assert.equal(Buffer.compare(again, BYTES.subarray(50_000, 150_000)), 0);
  }
}

for (const [name, state] of [
  ["with an ETag", { etag: '"one"' }],
  ["without validators", {}],
  ["without ranges", { ranges: false }],
]) {
  test(`a server ${name}`, async () => {
    const server = await new FaultServer({ bytes: BYTES, ...state }).listen();
    try {
      assert.equal(Buffer.compare(await readHead(server), BYTES.subarray(0, 600_000)), 0);
      if (server.ranges) assert.ok(server.sentBytes < 700_000, `${server.sentBytes} bytes sent`);
    } finally {
      await server.close();
    }
  });
}

for (const kind of ["otherRange", "multipart", "noContentRange", "page", "pageInDisguise"]) {
  for (const number of [0, 1]) {
    test(`response ${number} is ${kind}`, async () => {
      const server = await new FaultServer({ bytes: BYTES, etag: '"one"' }).listen();
      server.nextFault = (_, index) => (index === number ? { kind: FAULTS[kind] } : undefined);
      try {
        const bytes = await readHead(server);
        assert.equal(Buffer.compare(bytes, BYTES.subarray(0, 600_000)), 0);
      } catch (error) {
        assert.ok(error instanceof TypeError && error.message.includes(server.origin), error.stack);
        assert.match(error.message, /web page|answered a request for bytes|does not support/);
      } finally {
        await server.close();
      }
    });
  }
}
