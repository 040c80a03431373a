//! `inpage serve` between honest clients and those that stall, dawdle, leave, or send too much: honest answers arrive, and
//! memory stays within a bound. `serve_limits.test.mjs` has the single rules.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { windows } from "../../scripts/process.mjs";
import { headOf, postOf, rawClient } from "./raw_client.mjs";
import { startServe } from "./serve_process.mjs";

const PATH = "/v1/completions";
const KEY = { authorization: "Bearer k1" };
const MIB = 1 << 20;
const HONEST_CLIENTS = 8;

/**
 * The factor by which an honest answer may take longer than alone. A reader that stalls blocks a server without these limits for as
 * long as it stays, which is for ever here.
 */
const MULTIPLE = 240;

/** The memory that the attacks may add to that of the program, in bytes. */
const MEMORY_BYTES = 150 * MIB;

/** Every event contains the model's name. It makes them so large that the buffers of the system are soon full. */
const LONG_NAME = "x".repeat(4000);

const SHORT = { model: "default", prompt: "Once upon a time", ignore_eos: true, max_tokens: 60 };
const HONEST = { ...SHORT, temperature: 0 };
/** More events than the engine keeps for a reader, and more pages than the pool has. */
const HEAVY = { ...SHORT, n: 8, logprobs: 5, max_tokens: 480, stream: true };

let server;
let isOver = false;
const sockets = new Set();
/** The attacks of which the server has closed a connection. */
const ended = new Set();
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

before(async () => {
  server = await startServe(
    ...["--id", LONG_NAME, "--api-key", "k1", "--switches", `{"maxBodyBytes":${4 * MIB}}`],
    // A small pool: two such readers hold all of it.
    ...["--kv-pool", "1024", "--context", "512"],
    ...["--write-timeout", "2", "--header-timeout", "2", "--body-timeout", "3"],
  );
});
after(() => server?.stop());

async function complete(limit_ms) {
  const started = performance.now();
  const response = await fetch(`${server.origin}${PATH}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...KEY },
    body: JSON.stringify(HONEST),
    signal: AbortSignal.timeout(limit_ms),
  });
  const { choices } = await response.json();
  return { text: choices?.[0].text, status: response.status, ms: performance.now() - started };
}

/** Memory of the program in bytes. */
const memoryBytes = () =>
  1024 * Number(execFileSync("ps", ["-o", "rss=", "-p", `${server.pid}`], { encoding: "utf8" }));

/** Repeats `act` with new connections until the test is over. */
async function attack(act) {
  while (!isOver) {
    const { socket, closed } = await rawClient(server.origin);
    sockets.add(socket);
    await Promise.race([act(socket), closed]);
    if (socket.destroyed) ended.add(act);
    socket.destroy();
    sockets.delete(socket);
    await pause(20);
  }
}

/** Resolves with the next event. `attack` looks for the end of the connection. */
const next = (socket, event) => new Promise((resolve) => socket.once(event, resolve));

const ATTACKS = {
  /** A client that does not read does not notice that the connection is closed, so it connects again after a time. */
  async stalledReader(socket) {
    socket.write(postOf(PATH, HEAVY, KEY));
    await pause(4000);
  },
  async slowReader(socket) {
    socket.write(postOf(PATH, HEAVY, KEY));
    while (!socket.destroyed) {
      socket.read(1024);
      await pause(50);
    }
  },
  async aborting(socket) {
    socket.write(postOf(PATH, HEAVY, KEY));
    socket.resume();
    await next(socket, "data");
    await pause(50);
  },
  async slowHead(socket) {
    socket.resume();
    for (const byte of headOf(PATH, KEY)) {
      if (socket.destroyed) return;
      socket.write(byte);
      await pause(300);
    }
  },
  async slowBody(socket) {
    socket.resume();
    socket.write(headOf(PATH, { ...KEY, "content-length": `${3 * MIB}` }) + " ".repeat(2 * MIB));
    while (!socket.destroyed) {
      socket.write(" ");
      await pause(300);
    }
  },
  tooLarge: (socket) => sendLarge(socket, 5, KEY),
  wrongKey: (socket) => sendLarge(socket, 31, { authorization: "Bearer k2" }),
};

async function sendLarge(socket, mebibytes, key) {
  socket.resume();
  socket.write(headOf(PATH, { ...key, "content-length": `${32 * MIB}` }));
  const piece = Buffer.alloc(MIB, 32);
  for (let sent = 0; sent < mebibytes && !socket.destroyed; sent++) {
    if (!socket.write(piece)) await next(socket, "drain");
  }
  await pause(500);
}

test("honest answers arrive in bounded time and memory beside hostile clients", async (t) => {
  await complete(60_000);
  const alone = [await complete(60_000), await complete(60_000)];
  const alone_ms = Math.max(...alone.map(({ ms }) => ms));
  const limit_ms = Math.ceil(MULTIPLE * alone_ms);
  const idleBytes = windows ? 0 : memoryBytes();
  let mostBytes = 0;
  const watch = setInterval(() => {
    if (!windows) mostBytes = Math.max(mostBytes, memoryBytes());
  }, 250);
  const attackers = [ATTACKS.stalledReader, ...Object.values(ATTACKS)];
  const attacks = attackers.map((act) => attack(act));
  try {
    // By then, the attacks go on for as long as a head may take, and stalled readers are first in the queue.
    while (!ended.has(ATTACKS.slowHead)) await pause(50);
    let longest_ms = 0;
    const honest = async () => {
      const { status, text, ms } = await complete(limit_ms);
      assert.deepEqual([status, text], [200, alone[0].text]);
      longest_ms = Math.max(longest_ms, ms);
    };
    await Promise.all(Array.from({ length: HONEST_CLIENTS }, honest));
    t.diagnostic(
      `alone ${alone_ms.toFixed(0)} ms, longest ${longest_ms.toFixed(0)} ms; ` +
        `memory ${(idleBytes / MIB).toFixed(0)} MiB, then at most ${(mostBytes / MIB).toFixed(0)} MiB`,
    );
    assert.ok(mostBytes <= idleBytes + MEMORY_BYTES, `${mostBytes} bytes, ${idleBytes} before`);
  } finally {
    isOver = true;
    clearInterval(watch);
    for (const socket of sockets) socket.destroy();
    await Promise.all(attacks);
  }
  assert.equal((await complete(limit_ms)).text, alone[0].text);
  assert.doesNotMatch(server.output.stderr, /Warning/);
});

test("24 requests at once end without warnings", async () => {
  await Promise.all(Array.from({ length: 24 }, () => complete(120_000)));
  assert.doesNotMatch(server.output.stderr, /MaxListeners|Warning/);
});
