//! The parts of a browser that downloads use, in memory: tabs with an origin private file system or the Cache API, Web Locks,
//! BroadcastChannel and a virtual clock. A tab can be frozen or killed, even in the middle of a write.

import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate } from "node:timers/promises";
import { MemoryCaches } from "./memory_caches.mjs";
import { seeded } from "./random.mjs";

const running = new AsyncLocalStorage();

/** The amount of work that runs outside of the event loop: hashes and Blobs. */
let outside = 0;
let activity = 0;
const counted = (run) =>
  function (...args) {
    outside += 1;
    return run.apply(this, args).finally(() => {
      outside -= 1;
      activity += 1;
    });
  };
Blob.prototype.arrayBuffer = counted(Blob.prototype.arrayBuffer);
const digest = crypto.subtle.digest.bind(crypto.subtle);
crypto.subtle.digest = counted(digest);

const never = new Promise(() => {});
const failure = (name, message = name) => new DOMException(message, name);

class Killed extends Error {}

/** The headers of another origin's response that a page may read. */
function safelisted(headers) {
  const names = ["content-length", "content-type", "last-modified"];
  return Object.fromEntries(Object.entries(headers).filter(([name]) => names.includes(name)));
}

/** One browser with its profile. */
export class MemoryBrowser {
  now_ms = Date.UTC(2026, 10, 22);
  /** Undefined: no limit. */
  quotaBytes;
  root = new Folder(this);
  caches = new MemoryCaches(this, current);
  locks = new Locks();
  channels = new Set();
  tabs = [];
  #timers = [];

  /** @param storage "opfs", or "cache" for a browser that has the Cache API only */
  constructor(seed = 1, storage = "opfs") {
    this.random = seeded(seed);
    this.storage = storage;
  }

  get usedBytes() {
    return this.root.size + this.caches.size;
  }

  /** Work that runs outside of the event loop: time does not advance meanwhile. */
  outside(run) {
    return counted(run)();
  }

  openTab() {
    const tab = new Tab(this);
    this.tabs.push(tab);
    return tab;
  }

  /** Installs this browser's `navigator`, `BroadcastChannel` and `caches` as globals. */
  install() {
    const browser = this;
    Object.defineProperty(globalThis, "navigator", {
      configurable: true,
      value: {
        onLine: true,
        locks: {
          request: (name, options, run) => browser.locks.request(current(), name, options, run),
          query: () => browser.locks.query(current()),
        },
        storage: {
          getDirectory: async () => {
            if (browser.storage !== "opfs") throw failure("SecurityError");
            return new FolderHandle(browser.root);
          },
          estimate: async () =>
            browser.quotaBytes === undefined
              ? {}
              : { usage: browser.usedBytes, quota: browser.quotaBytes },
        },
      },
    });
    globalThis.caches = browser.storage === "cache" ? browser.caches : undefined;
    globalThis.BroadcastChannel = class {
      constructor() {
        this.tab = current();
        browser.channels.add(this);
      }
      postMessage(data) {
        if (!this.tab.isRunning) return;
        for (const channel of browser.channels) {
          if (channel !== this && channel.tab.isRunning)
            queueMicrotask(() => channel.onmessage?.({ data }));
        }
      }
      close() {
        browser.channels.delete(this);
      }
    };
  }

  /** Waits for `promise`. Time advances only while nothing else happens. */
  async run(promise, limit_ms = 3_600_000) {
    const end = this.now_ms + limit_ms;
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    while (!isSettled) {
      await quiet();
      if (isSettled) break;
      const timer = this.#timers
        .filter(({ tab }) => tab.isRunning)
        .sort((a, b) => a.at_ms - b.at_ms)[0];
      if (timer === undefined) throw new Error("deadlock: all tabs wait and there is no timer");
      if (timer.at_ms > end) throw new Error("this takes longer than an hour");
      this.now_ms = Math.max(this.now_ms, timer.at_ms);
      this.#timers.splice(this.#timers.indexOf(timer), 1);
      timer.fire();
    }
    return promise;
  }

  /** Calls `run` after this much virtual time. */
  after(ms, run) {
    this.addTimer({ at_ms: this.now_ms + ms, tab: { isRunning: true }, fire: run });
  }

  /** Flips a bit of a random file in the storage. */
  damage() {
    const files = [];
    const collect = (folder) => {
      for (const entry of folder.entries.values()) {
        if (entry instanceof Folder) collect(entry);
        else if (entry.size > 0) files.push(entry);
      }
    };
    collect(this.root);
    for (const cache of this.caches.caches.values()) files.push(...cache.values());
    if (files.length === 0) return;
    const file = this.random.pick(files);
    file.bytes[this.random.below(file.bytes.length)] ^= 1 << this.random.below(8);
    file.changes += 1;
  }

  /** Same as `Clear-Site-Data` does. Files that are open take and give no bytes any more, as in Chromium. */
  clearStorage() {
    const clear = (folder) => {
      for (const entry of folder.entries.values()) {
        if (entry instanceof Folder) clear(entry);
        else Object.assign(entry, { isCleared: true, changes: entry.changes + 1 });
      }
      folder.entries.clear();
    };
    clear(this.root);
  }

  addTimer(timer) {
    this.#timers.push(timer);
  }

  removeTimer(timer) {
    const index = this.#timers.indexOf(timer);
    if (index >= 0) this.#timers.splice(index, 1);
  }
}

async function quiet() {
  let seen;
  do {
    seen = activity;
    for (let turn = 0; turn < 4; turn++) await setImmediate();
    while (outside > 0) await setImmediate();
  } while (seen !== activity);
}

function current() {
  const tab = running.getStore();
  if (tab === undefined) throw new Error("code of a page runs outside of `tab.run`");
  return tab;
}

/** A tab. Its code runs in `run`. */
class Tab {
  isKilled = false;
  isFrozen = false;
  handles = new Set();
  /** The number of writes after which the tab is killed, in the middle of the last one. */
  writesToLive = Number.POSITIVE_INFINITY;
  #thaw = [];

  constructor(browser) {
    this.browser = browser;
    this.killed = new Promise((resolve) => {
      this.die = resolve;
    });
    this.clock = {
      nowMs: () => browser.now_ms,
      random: browser.random,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal.aborted) {
            reject(signal.reason);
            return;
          }
          const onAbort = () => {
            browser.removeTimer(timer);
            reject(signal.reason);
          };
          const fire = () => {
            signal.removeEventListener("abort", onAbort);
            resolve();
          };
          const timer = { at_ms: browser.now_ms + ms, tab: this, fire };
          browser.addTimer(timer);
          signal.addEventListener("abort", onAbort);
        }),
    };
  }

  get isRunning() {
    return !this.isKilled && !this.isFrozen;
  }

  run(work) {
    return running.run(this, work);
  }

  kill() {
    this.isKilled = true;
    this.die();
    for (const handle of this.handles) handle.drop();
    this.browser.locks.release(this);
    activity += 1;
  }

  freeze() {
    this.isFrozen = true;
  }

  thaw() {
    this.isFrozen = false;
    for (const go of this.#thaw.splice(0)) go();
    activity += 1;
  }

  /** Resolves while the tab runs. */
  async alive() {
    activity += 1;
    if (this.isKilled) await never;
    if (this.isFrozen) await new Promise((resolve) => this.#thaw.push(resolve));
  }

  /** A `fetch` to `server`. */
  fetchFile(server, pieceBytes) {
    return async (url, { method = "GET", headers, signal }) => {
      await this.alive();
      signal.throwIfAborted();
      const { pathname } = new URL(url);
      const plain = Object.fromEntries(new Headers(headers));
      const answer = server.answer({ method, path: pathname, headers: plain });
      const aborted = new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
      aborted.catch(() => {});
      if (answer.status === undefined) {
        if (answer.fault.kind === "refuse") throw new TypeError("fetch failed");
        return aborted;
      }
      const { status } = answer;
      const sent = server.exposeHeaders ? answer.headers : safelisted(answer.headers);
      if (method === "HEAD") return new Response(null, { status, headers: sent });
      const pieces = server.pieces(answer, pieceBytes);
      const body = new ReadableStream(
        {
          pull: async (controller) => {
            const next = this.alive().then(() => pieces.next());
            const { done, value } = await Promise.race([next, aborted]);
            if (!done && answer.record.isTrickling) await this.clock.sleep(1000, signal);
            if (!done) controller.enqueue(new Uint8Array(value));
            else if (value === "cut") throw new TypeError("terminated");
            else if (value === "stall") await aborted;
            else controller.close();
          },
        },
        { highWaterMark: 0 },
      );
      return new Response(body, { status, headers: sent });
    };
  }
}

class Locks {
  #held = new Map();
  #queues = new Map();

  request(tab, name, { signal, steal, ifAvailable }, run) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      if (ifAvailable && this.#held.has(name)) {
        resolve(tab.run(() => run(null)));
        return;
      }
      const request = { tab, name, run, resolve, reject };
      if (steal) {
        const holder = this.#held.get(name);
        this.#held.delete(name);
        holder?.reject(failure("AbortError", "the lock was stolen"));
        this.#grant(request);
        return;
      }
      const queue = this.#queues.get(name) ?? [];
      this.#queues.set(name, queue);
      queue.push(request);
      signal?.addEventListener("abort", () => {
        const index = queue.indexOf(request);
        if (index >= 0) queue.splice(index, 1);
        reject(signal.reason);
      });
      this.#next(name);
    });
  }

  async query(tab) {
    await tab.alive();
    return { held: [...this.#held.keys()].map((name) => ({ name })) };
  }

  release(tab) {
    for (const queue of this.#queues.values()) {
      queue.splice(0, queue.length, ...queue.filter((request) => request.tab !== tab));
    }
    for (const [name, request] of [...this.#held]) {
      if (request.tab !== tab) continue;
      this.#held.delete(name);
      this.#next(name);
    }
  }

  #next(name) {
    if (this.#held.has(name)) return;
    const request = this.#queues.get(name)?.shift();
    if (request !== undefined) this.#grant(request);
  }

  async #grant(request) {
    const { tab, name, run, resolve, reject } = request;
    this.#held.set(name, request);
    activity += 1;
    try {
      await tab.alive();
      resolve(await tab.run(() => run({ name })));
    } catch (error) {
      reject(error);
    } finally {
      if (this.#held.get(name) === request) {
        this.#held.delete(name);
        this.#next(name);
      }
    }
  }
}

class Folder {
  entries = new Map();

  constructor(browser) {
    this.browser = browser;
  }

  get size() {
    let size = 0;
    for (const entry of this.entries.values()) size += entry.size;
    return size;
  }
}

class StoredFile {
  bytes = new Uint8Array();
  /** Counts changes, because a snapshot of an older version cannot be read. */
  changes = 0;
  flushedBytes = 0;
  lockedBy = undefined;

  constructor(browser) {
    this.browser = browser;
  }

  get size() {
    return this.bytes.length;
  }

  resize(size) {
    const bytes = new Uint8Array(size);
    bytes.set(this.bytes.subarray(0, size));
    this.bytes = bytes;
    this.changes += 1;
  }
}

class FolderHandle {
  kind = "directory";

  constructor(folder) {
    this.folder = folder;
  }

  getDirectoryHandle(name, options) {
    return this.#entry(name, options, Folder, FolderHandle);
  }

  getFileHandle(name, options) {
    return this.#entry(name, options, StoredFile, FileHandle);
  }

  async removeEntry(name) {
    await current().alive();
    const entry = this.folder.entries.get(name);
    if (entry === undefined) throw failure("NotFoundError");
    if (entry.lockedBy !== undefined) throw failure("NoModificationAllowedError");
    entry.changes += 1;
    this.folder.entries.delete(name);
  }

  async *keys() {
    for await (const [name] of this.entries()) yield name;
  }

  async *entries() {
    for (const [name, entry] of [...this.folder.entries]) {
      await current().alive();
      yield [name, entry instanceof Folder ? new FolderHandle(entry) : new FileHandle(entry)];
    }
  }

  async #entry(name, { create = false } = {}, Kind, Handle) {
    await current().alive();
    const { entries, browser } = this.folder;
    if (!entries.has(name)) {
      if (!create) throw failure("NotFoundError");
      entries.set(name, new Kind(browser));
    }
    const entry = entries.get(name);
    if (!(entry instanceof Kind)) throw failure("TypeMismatchError");
    return new Handle(entry);
  }
}

class FileHandle {
  kind = "file";

  constructor(file) {
    this.file = file;
  }

  async getFile() {
    await current().alive();
    return new Snapshot(this.file, this.file.changes, 0, this.file.size);
  }

  async createSyncAccessHandle() {
    const tab = current();
    await tab.alive();
    if (this.file.lockedBy !== undefined)
      throw failure("NoModificationAllowedError", "the file is in use");
    return new AccessHandle(this.file, tab);
  }
}

class Snapshot {
  constructor(file, changes, start, end) {
    Object.assign(this, { file, changes, start, end });
  }

  get size() {
    return this.end - this.start;
  }

  slice(start, end) {
    const at = (offset) => Math.min(this.end, this.start + offset);
    return new Snapshot(this.file, this.changes, at(start), at(end));
  }

  async arrayBuffer() {
    await current().alive();
    if (this.file.changes !== this.changes)
      throw failure("NotReadableError", "the file has changed");
    return this.file.bytes.slice(this.start, this.end).buffer;
  }

  async text() {
    return new TextDecoder().decode(await this.arrayBuffer());
  }
}

class AccessHandle {
  #isOpen = true;

  constructor(file, tab) {
    this.file = file;
    this.tab = tab;
    file.lockedBy = this;
    tab.handles.add(this);
  }

  #check() {
    if (this.tab.isKilled) throw new Killed();
    if (!this.#isOpen) throw failure("InvalidStateError");
  }

  write(bytes, { at }) {
    this.#check();
    const { file, tab } = this;
    const { browser } = file;
    if (file.isCleared) return 0;
    let { length } = bytes;
    if (browser.quotaBytes !== undefined) {
      const free = browser.quotaBytes - browser.usedBytes;
      const growth = Math.max(0, at + length - file.size);
      if (growth > free) length = Math.max(0, length - (growth - free));
    }
    tab.writesToLive -= 1;
    const isLast = tab.writesToLive <= 0;
    // A write of at most 4 KiB is not torn.
    if (isLast && length > 4096) length = browser.random.below(length);
    else if (isLast && browser.random.chance(0.5)) length = 0;
    if (at + length > file.size) file.resize(at + length);
    file.bytes.set(bytes.subarray(0, length), at);
    file.changes += 1;
    activity += 1;
    if (isLast) {
      tab.kill();
      throw new Killed();
    }
    return length;
  }

  read(bytes, { at }) {
    this.#check();
    if (this.file.isCleared) return 0;
    const piece = this.file.bytes.subarray(at, at + bytes.length);
    bytes.set(piece);
    return piece.length;
  }

  truncate(size) {
    this.#check();
    this.file.resize(size);
  }

  getSize() {
    this.#check();
    return this.file.size;
  }

  flush() {
    this.#check();
    this.file.flushedBytes = this.file.size;
  }

  close() {
    if (this.tab.isKilled || !this.#isOpen) return;
    this.#isOpen = false;
    this.file.lockedBy = undefined;
    this.file.flushedBytes = this.file.size;
    this.tab.handles.delete(this);
  }

  /** The tab is killed. Bytes that were not flushed may be lost. */
  drop() {
    const { file } = this;
    file.lockedBy = undefined;
    const unflushed = file.size - file.flushedBytes;
    if (unflushed > 0) file.resize(file.size - file.browser.random.below(unflushed + 1));
  }
}
