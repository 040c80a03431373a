//! The platform of Node, Deno and Bun, in place of a browser.
//!
//! The cache is that of the browser on a folder (`disk_folder.ts`) and with lock files (`file_locks.ts`), so there is no second
//! download path. Nothing in `www/src` imports this folder: bundlers for the web never see a `node:` import.

import { accessSync, constants, mkdirSync } from "node:fs";
import { mkdir, readFile, statfs } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Platform } from "../platform.js";
import { cachePlace } from "./cache_place.js";
import { decodeByOwner } from "./decode_by_owner.js";
import { DiskFolder } from "./disk_folder.js";
import { EngineThread } from "./engine_thread.js";
import { FileLocks } from "./file_locks.js";
import { fileSource } from "./disk_file.js";
import { localPlace } from "./local_place.js";

const PACKAGED_WASM = new URL("../wasm/inpage_bg.wasm", import.meta.url);

const modelsFolder = () => join(cachePlace(), "models");

const locksFolder = () => join(cachePlace(), "locks");

const fileLocks = new FileLocks(locksFolder);

/** Creates the folder if it is missing. */
function isWritable(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

export const nodePlatform: Platform = {
  cacheKind: "disk",
  get locks() {
    return isWritable(locksFolder()) ? fileLocks : undefined;
  },
  async cacheFolder() {
    if (!isWritable(locksFolder())) return undefined;
    try {
      await mkdir(modelsFolder(), { recursive: true });
      return new DiskFolder(modelsFolder()).handle;
    } catch {
      return undefined;
    }
  },
  async freeBytes() {
    try {
      const { bavail, bsize } = await statfs(modelsFolder());
      return bavail * bsize;
    } catch {
      return undefined;
    }
  },
  locate: localPlace,
  openFile: (url) => fileSource(fileURLToPath(url)),
  startThread: () => new EngineThread(),
  startCpuThread: (name) => new EngineThread(name),
  sharesMemory: true,
  // Node handles up to 1000 messages of a port before it looks at another one.
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
  decodeImage: decodeByOwner,
  readWasm: (url = PACKAGED_WASM) => readFile(/^file:/i.test(`${url}`) ? new URL(url) : `${url}`),
};
