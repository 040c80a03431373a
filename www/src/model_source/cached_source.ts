//! A file in the cache: the current version if it is still the one on the server, or cannot be replaced; else a download, which becomes the
//! current version when it is complete and verified. Runs while this tab holds the entry's lock.

import { messageOf } from "../exchange/error_response.js";
import type { Arrival } from "./arrival.js";
import type { StoredVersion } from "./cache_layout.js";
import { ChangedFile, NoSuchFile, TransientFailure, isStorageFailure } from "./failure.js";
import { askVersion } from "./http.js";
import { BlobStore, Intake } from "./intake.js";
import type { ModelStore, VersionWriter } from "./model_store.js";
import { readAhead } from "./read_ahead.js";
import type { ModelSource } from "./source.js";
import { freeBytes, isPlenty, shortage } from "./space.js";
import { transfer } from "./transfer.js";
import type { Turn } from "./turn.js";
import { intakeSource } from "./uncached_source.js";
import { type Context, WrongHash, hasherFor, jobOf, verifyHash } from "./url_file.js";
import { VerifiedSource } from "./verified_source.js";
import { type FileVersion, isCurrent } from "./version.js";

/** If the network does not answer within this time, the cached file is used without revalidation. */
const REVALIDATE_TIMEOUT_MS = 5000;

/** The file cannot be cached. */
export class Uncachable extends Error {}

/**
 * Gives `arrival` the file.
 *
 * @throws Uncachable if the storage does not take it and nothing of it was read; NoSuchFile if the server has no such file, or is
 * offline and had none at the last request
 */
export async function cachedSource(
  context: Context,
  store: ModelStore,
  turn: Turn,
  arrival: Arrival,
): Promise<void> {
  const { clock, report, warn, file } = context;
  const { current, next, newest } = await store.versions();
  const usable = current && (await hasExpectedHash(context, store, current)) ? current : undefined;
  const use = async (version: StoredVersion) => {
    await store.noteUse(clock.nowMs());
    report("opfs");
    arrival.finish(await storedSource(context, store, version, false));
  };
  const state = usable && (await stateOf(context, usable));
  // What another download has left of an older or a newer version is not needed any more.
  if (usable && state === "current") await store.removeOthers(usable.number);
  if (usable && state !== "outdated") return use(usable);
  if (usable === undefined) await checkAbsence(context, store);
  try {
    await checkSpace(context, store, next);
    // While there is a good version, a new one is read only when it is known to be good, too.
    const download = new CacheDownload(context, store, turn, usable ? undefined : arrival);
    await download.run(next, newest, arrival);
  } catch (error) {
    context.signal.throwIfAborted();
    turn.lost.throwIfAborted();
    if (error instanceof Uncachable) throw error;
    if (error instanceof NoSuchFile && usable === undefined) await store.noteAbsence();
    if (usable === undefined) throw error;
    warn(`${messageOf(error)} The stored copy of ${file.url} is used.`);
    await use(usable);
  }
}

/** Whether the stored version is the one that the app wants, if it wants a certain one. */
async function hasExpectedHash(
  { file, createHasher, signal }: Context,
  store: ModelStore,
  version: StoredVersion,
): Promise<boolean> {
  const { note, number } = version;
  if (file.sha256 === undefined || createHasher === undefined) return true;
  if (note.isHashVerified) return note.sha256 === file.sha256;
  const hasher = createHasher();
  const data = await store.data(number);
  for (let offset = 0; offset < data.size; offset += note.chunkBytes) {
    signal.throwIfAborted();
    const chunk = data.slice(offset, offset + note.chunkBytes);
    hasher.update(new Uint8Array(await chunk.arrayBuffer()));
  }
  const sha256 = await hasher.finish();
  if (sha256 !== file.sha256) return false;
  await store.amend(version, { sha256, isHashVerified: true }).catch(() => {});
  return true;
}

/** Whether the stored version is the server's. If the server does not answer with the file, the stored version is still good. */
async function stateOf(
  context: Context,
  { note }: StoredVersion,
): Promise<"current" | "outdated" | "unknown"> {
  const { file, warn } = context;
  // It has the hash that is expected, and cannot be outdated.
  if (file.sha256 !== undefined) return "current";
  const now = await versionNow(context);
  if (now instanceof Error) {
    const isOffline = now instanceof TransientFailure && now.isUnreached;
    if (!isOffline) warn(`${now.message}. The stored copy is used.`);
    return "unknown";
  }
  // Servers choose their own ETags and dates, so those of a mirror say nothing.
  const isMirror = new URL(note.url).origin !== new URL(file.url).origin;
  const comparable = isMirror ? { ...now, etag: null, lastModified: null } : now;
  return isCurrent(note, comparable) ? "current" : "outdated";
}

/** The version on the server, or the error of the request. */
async function versionNow({ file, clock, signal }: Context): Promise<FileVersion | Error> {
  const attempt = new AbortController();
  const settled = new AbortController();
  clock.sleep(REVALIDATE_TIMEOUT_MS, settled.signal).then(
    () => attempt.abort(new TransientFailure(`no answer from ${file.url}`, { isUnreached: true })),
    () => {},
  );
  try {
    const either = AbortSignal.any([signal, attempt.signal]);
    return await askVersion(file.url, file.fetchFile, either);
  } catch (error) {
    signal.throwIfAborted();
    return error as Error;
  } finally {
    settled.abort();
  }
}

/** Throws if the server had no such file, and still has none or cannot be reached. */
async function checkAbsence(context: Context, store: ModelStore): Promise<void> {
  if (!(await store.isAbsent())) return;
  const now = await versionNow(context);
  if (now instanceof NoSuchFile) throw now;
  if (now instanceof TransientFailure) {
    throw new NoSuchFile(
      `${context.file.url} was not on the server at the last request, and the server cannot be reached now`,
    );
  }
}

/** Throws `Uncachable` if there is not enough space. Where there may be too little, the server is asked for the size first. */
async function checkSpace(
  context: Context,
  store: ModelStore,
  next: StoredVersion | undefined,
): Promise<void> {
  if (isPlenty(await freeBytes())) return;
  const now = await versionNow(context);
  if (now instanceof Error || now.sizeBytes === undefined) return;
  const isUsable = next !== undefined && isCurrent(next.note, now);
  if (next !== undefined && !isUsable) await store.remove(next.number);
  const storedBytes = isUsable ? next.storedBytes : 0;
  const reason = shortage(await freeBytes(), now.sizeBytes - storedBytes);
  if (reason !== undefined) throw new Uncachable(reason);
}

async function storedSource(
  context: Context,
  store: ModelStore,
  version: StoredVersion,
  isFresh: boolean,
): Promise<ModelSource> {
  const hashes = await store.hashes(version);
  const stored = { store, version, hashes, job: jobOf(context), onRepair: context.warn };
  return readAhead(new VerifiedSource(stored, isFresh), context.windowBytes);
}

/** One download into the cache. */
class CacheDownload {
  #context: Context;
  #store: ModelStore;
  #turn: Turn;
  /** Reads the file while it arrives. */
  #reader: Arrival | undefined;

  constructor(context: Context, store: ModelStore, turn: Turn, reader: Arrival | undefined) {
    const signal = AbortSignal.any([context.signal, turn.lost]);
    this.#context = { ...context, signal };
    this.#store = store;
    this.#turn = turn;
    this.#reader = reader;
  }

  async run(next: StoredVersion | undefined, newest: number, arrival: Arrival): Promise<void> {
    const { file, chunkBytes, onBytes, report, clock, signal } = this.#context;
    const writer = await this.#open(next, newest);
    const intake: Intake = new Intake({
      url: file.url,
      chunkBytes,
      store: writer,
      spare: new BlobStore(),
      createHasher: () => hasherFor(this.#context, intake),
      onSpare: (failure) => report("memory", failure.message),
      onArrived: () => {
        onBytes(intake.position, intake.version?.sizeBytes);
        this.#turn.report(intake.position, intake.version?.sizeBytes);
        this.#reader?.grow(intake);
      },
    });
    try {
      if (next !== undefined) await this.#resume(intake, writer, next);
      await transfer(jobOf(this.#context), intake);
      await intake.finish();
      const verified = await verifyHash(this.#context, intake);
      signal.throwIfAborted();
      const stated = intake.version as FileVersion;
      const version = { ...stated, sizeBytes: intake.position, sha256: verified ?? stated.sha256 };
      const isHashVerified = verified !== undefined;
      if (!intake.usesSpare) writer.complete(version, isHashVerified, clock.nowMs());
    } catch (error) {
      intake.release();
      writer.close();
      const isUseless = error instanceof WrongHash || error instanceof ChangedFile;
      if (isUseless) await this.#store.remove(writer.number);
      throw error;
    }
    intake.release();
    writer.close();
    if (intake.usesSpare) {
      arrival.finish(readAhead(intakeSource(intake), this.#context.windowBytes), intake);
      return;
    }
    await this.#store.removeOthers(writer.number);
    await this.#store.noteUse(clock.nowMs());
    report("opfs");
    const { current } = await this.#store.versions();
    if (current === undefined) throw new TypeError(`the browser's storage lost ${file.url}`);
    arrival.finish(await storedSource(this.#context, this.#store, current, true), intake);
  }

  /** Opens the version that broke off, or a new one. */
  async #open(next: StoredVersion | undefined, newest: number): Promise<VersionWriter> {
    const { file, clock } = this.#context;
    // The number of a version that was removed must not come back: another tab may be reading it.
    const fresh = Math.max(newest + 1, Math.floor(clock.nowMs()));
    const open = (number: number) => this.#store.writer(number, file.url, clock.nowMs());
    try {
      if (next === undefined) return await open(fresh);
      // Another tab may still hold its files, though it does not run: it is frozen.
      return await open(next.number).catch(() => open(fresh));
    } catch (error) {
      if (!isStorageFailure(error)) throw error;
      throw new Uncachable(`the browser's storage cannot be written: ${error.message}`);
    }
  }

  /** Continues with the chunks of `next`, which are copied if the writer is another version's. */
  async #resume(intake: Intake, writer: VersionWriter, next: StoredVersion): Promise<void> {
    const { chunkBytes, signal } = this.#context;
    const { note, storedBytes, number } = next;
    if (note.chunkBytes !== chunkBytes) {
      writer.truncate(0);
      return;
    }
    // The last chunk is fetched again: a request for nothing would say nothing about the version.
    const last = Math.ceil((note.sizeBytes ?? Number.POSITIVE_INFINITY) / chunkBytes) - 1;
    const chunks = Math.min(Math.floor(storedBytes / chunkBytes), last);
    const hashes = (await this.#store.hashes(next)).slice(0, Math.max(0, chunks));
    if (writer.number !== number) {
      const data = await this.#store.data(number);
      writer.describe(note);
      for (const [index, hash] of hashes.entries()) {
        signal.throwIfAborted();
        const chunk = data.slice(index * chunkBytes, (index + 1) * chunkBytes);
        writer.put(index, new Uint8Array(await chunk.arrayBuffer()), hash);
      }
    }
    // Validators of a mirror do not allow to go on at this server: what comes is compared from its start.
    const isMirror = new URL(note.url).origin !== new URL(this.#context.file.url).origin;
    const version = isMirror ? { ...note, etag: null, lastModified: null } : note;
    await intake.resume(hashes, version, signal);
  }
}
