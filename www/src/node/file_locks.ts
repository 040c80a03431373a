//! Locks between all threads and programs of this machine, as files in one folder: the interface of Web Locks. Some
//! versions of Node have none, and those of the others work within one program. A holder that is killed loses its lock. Holders find each
//! other by listing the folder: it must be on a disk of this machine.

import {
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";

/** A holder renews its file this often. */
const BEAT_MS = 2000;
/** A file that was not renewed for this long belongs to a holder that is gone or stopped. */
const STALE_MS = 20_000;
/** A waiting program looks again after this time, and up to as much more. */
const RETRY_MS = 50;
/** Two requests at the same time may keep each other from a lock that is free. So one that does not wait looks this often. */
const LOOKS = 3;
const LOOK_AGAIN_MS = 2;

/** Ends of the names of lock files, after the lock's name. Earlier releases had one exclusive file, without an id. */
const EXCLUSIVE = ".lock";
const SHARED = ".shared";

interface Options {
  mode?: LockMode;
  ifAvailable?: boolean;
  signal?: AbortSignal;
}

type Granted = (lock: Lock | null) => unknown;

/** The writer of a file. The id differs between two locks of one thread. */
interface Holder {
  pid: number;
  host: string;
  id: string;
}

export class FileLocks {
  #folder: () => string;

  /** @param folder created when it is first needed */
  constructor(folder: () => string) {
    this.#folder = folder;
  }

  /**
   * Same as `navigator.locks.request`, except that `steal` waits: a holder that no longer renews its lock loses it after
   * `STALE_MS`.
   *
   * @throws DOMException named `AbortError` if the lock passes to another holder before the callback has ended
   */
  request = (async (name: string, ...rest: [Granted] | [Options, Granted]): Promise<unknown> => {
    const [options, granted] = rest.length === 1 ? [{}, rest[0]] : rest;
    const { mode = "exclusive", ifAvailable = false, signal } = options;
    const held = new LockFile(this.#folder(), name, mode);
    const pauseMs = ifAvailable ? LOOK_AGAIN_MS : RETRY_MS;
    for (let looks = 1; ; looks++) {
      signal?.throwIfAborted();
      if (held.take()) break;
      if (ifAvailable && looks === LOOKS) return granted(null);
      await new Promise((resolve) => setTimeout(resolve, pauseMs * (1 + Math.random())));
    }
    const lost = held.watch();
    try {
      return await Promise.race([granted({ name, mode }), lost]);
    } finally {
      held.release();
    }
  }) as LockManager["request"];
}

/**
 * One request for a lock: a file whose name no other request ever has. So a file that is found to be of a holder that is gone can be
 * removed at any later time: it cannot have become another holder's in the meantime. Everything is synchronous, so that a thread
 * that is about to end still releases its lock.
 */
class LockFile {
  #folder: string;
  #prefix: string;
  #file: string;
  /** Ends of the names of the files that exclude this lock. */
  #excluding: readonly string[];
  #holder: Holder = { pid: process.pid, host: hostname(), id: crypto.randomUUID() };
  #beat: ReturnType<typeof setInterval> | undefined;

  constructor(folder: string, name: string, mode: LockMode) {
    this.#folder = folder;
    this.#prefix = name.replace(/[^\w-]/g, "_");
    const isExclusive = mode === "exclusive";
    this.#file = `${this.#prefix}.${this.#holder.id}${isExclusive ? EXCLUSIVE : SHARED}`;
    this.#excluding = isExclusive ? [EXCLUSIVE, SHARED] : [EXCLUSIVE];
  }

  /**
   * True if the lock is held now. Everyone creates a file first and looks for the files of others then, so that of two at
   * least one finds the other; both may, and then neither gets the lock.
   */
  take(): boolean {
    mkdirSync(this.#folder, { recursive: true });
    // A file that is created in vain keeps others from the lock for a moment.
    if (this.#isExcluded()) return false;
    const path = this.#path(this.#file);
    writeFileSync(path, JSON.stringify(this.#holder), { flag: "wx" });
    if (!this.#isExcluded()) return true;
    rmSync(path, { force: true });
    return false;
  }

  /** Keeps the lock. The promise rejects when another holder has taken it over, and never resolves. */
  watch(): Promise<never> {
    const path = this.#path(this.#file);
    const lost = new Promise<never>((_, reject) => {
      this.#beat = setInterval(() => {
        if (holderOf(path)?.id === this.#holder.id) {
          const now = new Date();
          utimesSync(path, now, now);
          return;
        }
        clearInterval(this.#beat);
        reject(new DOMException("another program has taken the lock over", "AbortError"));
      }, BEAT_MS);
    });
    lost.catch(() => {});
    return lost;
  }

  release(): void {
    clearInterval(this.#beat);
    const path = this.#path(this.#file);
    if (holderOf(path)?.id === this.#holder.id) rmSync(path, { force: true });
  }

  /** True if another holder excludes this lock. The files of holders that are gone are removed. */
  #isExcluded(): boolean {
    const others = readdirSync(this.#folder).filter(
      (file) =>
        file !== this.#file &&
        file.startsWith(`${this.#prefix}.`) &&
        this.#excluding.some((end) => file.endsWith(end)),
    );
    return others.filter((file) => !this.#removeIfGone(file)).length > 0;
  }

  /** True if there is no such file, or there was one of a holder that is gone. */
  #removeIfGone(file: string): boolean {
    const path = this.#path(file);
    const modifiedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    if (modifiedMs === undefined) return true;
    const isStale = Date.now() - modifiedMs > STALE_MS;
    if (!isStale && isAlive(holderOf(path))) return false;
    rmSync(path, { force: true });
    return true;
  }

  #path(file: string): string {
    return join(this.#folder, file);
  }
}

/** Undefined if the file is gone, or is just being written. */
function holderOf(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as Holder;
  } catch {
    return undefined;
  }
}

/** False only if the holder is known to be gone. */
function isAlive(holder: Holder | undefined): boolean {
  if (holder === undefined || holder.host !== hostname()) return true;
  try {
    process.kill(holder.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
