//! Downloads in Node: kept on disk for the next start, listed and deleted by `cache`, shared by threads and programs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { cache, createEngine, InpageError } from "inpage";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { cachePlace } from "../../www/dist/node/cache_place.js";
import { FileLocks } from "../../www/dist/node/file_locks.js";
import { fileSource } from "../../www/dist/node/disk_file.js";
import { startModelServer } from "../browser/model_server.mjs";

const TALES = join(root, "www/models/tales.gguf");
const greedy = { model: "default", prompt: "Once upon a time", temperature: 0, max_tokens: 8 };

/** The answer of a model, once `isDone()`: a model is loaded a moment before its last byte is stored. */
async function answerOf(model, isDone = async () => true) {
  const engine = await createEngine({ model });
  try {
    const { choices } = await engine.completions.create(greedy);
    while (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 20));
    return { text: choices[0].text, info: await engine.info() };
  } finally {
    await engine.dispose();
  }
}

test("a download is kept, used again without its server, repaired, listed and deleted", async () => {
  const folder = temporaryFolder("inpage-cache-");
  process.env.INPAGE_CACHE_DIR = folder;
  const state = { bytes: readFileSync(TALES), etag: '"1"' };
  const server = await startModelServer(state);
  const { text } = await answerOf("embedded");
  assert.deepEqual(readdirSync(folder), [], "the embedded model is not cached");

  const first = await answerOf(server.url, async () => (await cache.list())[0]?.complete);
  assert.equal(first.text, text);
  assert.equal(first.info.storage, "disk");
  assert.ok(state.sentBytes >= state.bytes.length);
  const [file] = await cache.list();
  assert.ok(file.complete);
  assert.equal(file.sizeBytes, state.bytes.length);
  assert.equal((await cache.size()).files, 1);

  state.sentBytes = 0;
  const second = await answerOf(server.url);
  assert.equal(second.text, text);
  assert.ok(state.sentBytes < 1 << 16, `${state.sentBytes} bytes`);

  // One byte of the stored copy is damaged: its chunk is fetched again.
  const [entry] = readdirSync(join(folder, "models"));
  const [data] = readdirSync(join(folder, "models", entry)).filter((name) => /\.data$/.test(name));
  const path = join(folder, "models", entry, data);
  const damaged = readFileSync(path);
  damaged[damaged.length >> 1] ^= 255;
  writeFileSync(path, damaged);
  assert.equal((await answerOf(server.url)).text, text);
  assert.deepEqual(readFileSync(path), state.bytes);

  await server.close();
  assert.equal((await answerOf(server.url)).text, text);
  assert.equal((await cache.delete(server.url)).length, 1);
  assert.deepEqual(await cache.list(), []);
  await assert.rejects(answerOf(server.url), InpageError);
  assert.deepEqual(readdirSync(join(folder, "locks")), [], "every lock was released");
});

test("where the folder cannot be written, the model loads all the same", async () => {
  const file = join(temporaryFolder("inpage-cache-"), "a file");
  writeFileSync(file, "");
  process.env.INPAGE_CACHE_DIR = file;
  const server = await startModelServer({ bytes: readFileSync(TALES), etag: '"1"' });
  try {
    const { text, info } = await answerOf(server.url);
    assert.match(text, /[a-z]/);
    assert.equal(info.storage, "memory");
    assert.match(info.storageReason, /storage/);
  } finally {
    await server.close();
  }
});

test("the folder is the user's, or the one that is named", () => {
  assert.equal(cachePlace({ INPAGE_CACHE_DIR: "x", XDG_CACHE_HOME: "/c" }), resolve("x"));
  assert.equal(cachePlace({ XDG_CACHE_HOME: "/c" }, "linux"), join("/c", "inpage"));
  assert.match(cachePlace({ XDG_CACHE_HOME: "c" }, "linux"), /[\\/]\.cache[\\/]inpage$/);
  assert.match(cachePlace({}, "darwin"), /Library[\\/]Caches[\\/]inpage$/);
  assert.equal(cachePlace({ LOCALAPPDATA: "/a" }, "win32"), join("/a", "inpage/Cache"));
});

test("a file is read behind its first 4 GiB, and not after it has changed", async () => {
  const path = join(temporaryFolder("inpage-large-"), "large");
  const file = openSync(path, "w");
  // Sparse: only the written bytes take space.
  const at = 5 * 2 ** 30;
  ftruncateSync(file, at + 100);
  writeSync(file, "behind", at + 7);
  closeSync(file);
  const source = await fileSource(path);
  assert.equal(source.size, at + 100);
  assert.equal(Buffer.from(await source.read(at + 7, 6)).toString(), "behind");
  await assert.rejects(source.read(at + 99, 2), RangeError);
  writeFileSync(path, "shorter");
  await assert.rejects(source.read(0, 1), /has changed/);
  assert.equal(await fileSource(join(path, "none")), undefined);
});

/** The number of programs that ask for a lock at the same time, and the number of requests of each. */
const CONTENDERS = 4;
const ROUNDS = Number(process.env.INPAGE_LOCK_ROUNDS ?? 150);

/** Reads the files of a folder. Returns a function that puts them there again. */
function remains(folder) {
  const files = readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]);
  return () => {
    for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
  };
}

describe("locks", () => {
  const folder = temporaryFolder("inpage-locks-");
  const locks = new FileLocks(() => folder);
  const ifAvailable = true;

  test("an exclusive lock has one holder, a shared one several", async () => {
    const order = [];
    const first = locks.request("a", async () => {
      assert.equal(await locks.request("a", { ifAvailable }, (lock) => lock), null);
      const shared = { mode: "shared", ifAvailable };
      assert.equal(await locks.request("a", shared, (lock) => lock), null);
      assert.equal(await locks.request("b", { ifAvailable }, ({ name }) => name), "b");
      order.push("first");
    });
    const second = locks.request("a", () => order.push("second"));
    await Promise.all([first, second]);
    assert.deepEqual(order, ["first", "second"]);
    await locks.request("a", { mode: "shared" }, async () => {
      const { mode } = await locks.request("a", { mode: "shared" }, (lock) => lock);
      assert.equal(mode, "shared");
      assert.equal(await locks.request("a", { ifAvailable }, (lock) => lock), null);
    });
    assert.deepEqual(readdirSync(folder), []);
  });

  test("the result and the error of the callback are passed on, and a signal ends the wait", async () => {
    assert.equal(await locks.request("c", async () => 7), 7);
    const failure = new Error("no");
    await assert.rejects(
      locks.request("c", () => {
        throw failure;
      }),
      failure,
    );
    const controller = new AbortController();
    await locks.request("c", async () => {
      const waiting = locks.request("c", { signal: controller.signal }, () => {});
      controller.abort(failure);
      await assert.rejects(waiting, failure);
    });
  });

  test("a program that is killed loses its lock", async () => {
    const script = fileURLToPath(new URL("lock_holder.mjs", import.meta.url));
    const holder = spawn(process.execPath, [script, folder, "d"], { stdio: ["ignore", "pipe", 2] });
    await once(holder.stdout, "data");
    assert.equal(await locks.request("d", { ifAvailable }, (lock) => lock), null);
    const waiting = locks.request("d", ({ name }) => name);
    holder.kill("SIGKILL");
    await once(holder, "close");
    assert.equal(await waiting, "d");
  });

  test("programs never share a lock that a killed program has left", async () => {
    const contended = temporaryFolder("inpage-contended-");
    const holder = fileURLToPath(new URL("lock_holder.mjs", import.meta.url));
    const killed = spawn(process.execPath, [holder, contended, "f"], {
      stdio: ["ignore", "pipe", 2],
    });
    await once(killed.stdout, "data");
    killed.kill("SIGKILL");
    await once(killed, "close");
    const leave = remains(contended);

    const script = fileURLToPath(new URL("lock_contender.mjs", import.meta.url));
    const marker = join(temporaryFolder("inpage-marker-"), "in the lock");
    const programs = Array.from({ length: CONTENDERS }, () => {
      const program = spawn(process.execPath, [script, contended, "f", marker], {
        stdio: ["pipe", "pipe", 2],
      });
      const lines = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
      return { program, lines };
    });
    const askAll = (what) =>
      Promise.all(
        programs.map(async ({ program, lines }) => {
          program.stdin.write(`${what}\n`);
          return (await lines.next()).value;
        }),
      );
    try {
      let held = 0;
      let shared = 0;
      for (let round = 0; round < ROUNDS; round++) {
        leave();
        const answers = await askAll("now");
        if (answers.includes("shared")) shared += 1;
        held += answers.filter((answer) => answer === "held").length;
      }
      assert.equal(shared, 0, `${shared} of ${ROUNDS} rounds`);
      assert.ok(held >= ROUNDS / 2, `the lock was held ${held} times in ${ROUNDS} rounds`);
      leave();
      assert.deepEqual(await askAll("wait"), Array(CONTENDERS).fill("held"));
      assert.deepEqual(readdirSync(contended), []);
    } finally {
      for (const { program } of programs) program.kill();
    }
  });

  test("a holder whose file is another's learns that it has lost the lock", async () => {
    const held = locks.request("e", () => new Promise(() => {}));
    const other = { pid: process.pid, host: "another", id: "another" };
    const [file] = readdirSync(folder).filter((name) => name.startsWith("e."));
    writeFileSync(join(folder, file), JSON.stringify(other));
    await assert.rejects(held, { name: "AbortError" });
    assert.deepEqual(JSON.parse(readFileSync(join(folder, file), "utf8")), other);
  });
});
