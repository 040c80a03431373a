//! A program that asks for a lock each time it is told to: `node lock_contender.mjs FOLDER NAME MARKER`. Each line on stdin is one request,
//! answered on stdout by `held`, `shared` (another program was in the lock) or `none`. The lock is asked for once at `now`, and until it is
//! free at `wait`.

import { mkdirSync, rmdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { FileLocks } from "../../www/dist/node/file_locks.js";

const [folder, name, marker] = process.argv.slice(2);
const locks = new FileLocks(() => folder);

async function inLock(lock) {
  if (lock === null) return "none";
  try {
    mkdirSync(marker);
  } catch {
    return "shared";
  }
  // The others look while this program is in the lock.
  await pause(4);
  rmdirSync(marker);
  return "held";
}

for await (const line of createInterface({ input: process.stdin })) {
  const ifAvailable = line === "now";
  process.stdout.write(`${await locks.request(name, { ifAvailable }, inLock)}\n`);
}
