//! One download into the cache: a version that becomes the current one when it is complete and verified.

import { locks } from "../../platform.js";
import type { Arrival } from "./arrival.js";
import { type StoredVersion, type Validators, entryLock } from "../store/cache_layout.js";
import { BlobStore } from "../store/chunk_store.js";
import { offerFile } from "./cross_origin_storage.js";
import { ChangedFile, isStorageFailure } from "../store/failure.js";
import { sameBytes } from "../store/hash.js";
import { Intake } from "../transfer/intake.js";
import type { CacheEntry } from "../store/entry.js";
import { readAhead } from "../transfer/read_ahead.js";
import { Uncachable } from "../transfer/revalidation.js";
import type { ModelSource } from "../../byte_source.js";
import { megabytes } from "../store/space.js";
import { transfer } from "../transfer/transfer.js";
import type { Turn } from "../transfer/turn.js";
import { intakeSource } from "./uncached.js";
import { type Context, WrongHash, hasherFor, jobOf, verifyHash } from "../transfer/url_file.js";
import { VerifiedSource } from "./verified.js";
import type { FileVersion } from "../store/version.js";
import type { VersionWriter } from "../store/version_writer.js";

/** The most replicas of a server whose validators are kept; the oldest are forgotten. */
const MOST_ALIASES = 8;

/** The file of a version. With `isFresh`, its chunks were hashed a moment ago. */
export async function storedSource(
  context: Context,
  store: CacheEntry,
  version: StoredVersion,
  isFresh: boolean,
): Promise<ModelSource> {
  const hashes = await store.hashes(version);
  const stored = { store, version, hashes, job: jobOf(context), onRepair: context.warn };
  return readAhead(new VerifiedSource(stored, isFresh), context.windowBytes);
}

/** One download into the cache. */
export class CacheDownload {
  #context: Context;
  #store: CacheEntry;
  #turn: Turn;
  /** Reads the file while it arrives. */
  #reader: Arrival | undefined;

  constructor(context: Context, store: CacheEntry, turn: Turn, reader: Arrival | undefined) {
    const signal = AbortSignal.any([context.signal, turn.lost]);
    this.#context = { ...context, signal };
    this.#store = store;
    this.#turn = turn;
    this.#reader = reader;
  }

  async run(next: StoredVersion | undefined, newest: number, arrival: Arrival): Promise<void> {
    const { file, chunkBytes, onBytes, report, clock, signal } = this.#context;
    const writer = await this.#open(next, newest);
    // Before anything can be read.
    report(this.#store.kind);
    const intake: Intake = new Intake({
      url: file.url,
      chunkBytes,
      store: writer,
      spare: new BlobStore(),
      createHasher: () => hasherFor(this.#context, intake),
      onSpare: ({ name, message }) =>
        report("memory", name === "QuotaExceededError" ? message + missing(intake) : message),
      onArrived: () => {
        onBytes(intake.position, intake.version?.sizeBytes);
        this.#turn.report(intake.position, intake.version?.sizeBytes);
        this.#reader?.grow(intake);
      },
    });
    let verified: string | undefined;
    try {
      if (next !== undefined) await this.#resume(intake, writer, next);
      await transfer(jobOf(this.#context), intake);
      await intake.finish();
      verified = await verifyHash(this.#context, intake);
      signal.throwIfAborted();
      const stated = intake.version as FileVersion;
      const version = { ...stated, sizeBytes: intake.position, sha256: verified ?? stated.sha256 };
      const isHashVerified = verified !== undefined;
      if (!intake.usesSpare) {
        const aliases = await this.#aliases(intake, version);
        await writer.complete(version, { isHashVerified, storedAtMs: clock.nowMs(), aliases });
      }
    } catch (error) {
      intake.release();
      await writer.close();
      const isUseless = error instanceof WrongHash || error instanceof ChangedFile;
      if (isUseless) await this.#store.remove(writer.number);
      throw error;
    }
    intake.release();
    await writer.close();
    if (intake.usesSpare) {
      const source = intakeSource(intake);
      arrival.finish(readAhead(source, this.#context.windowBytes), intake);
      void this.#removeAfterRead(writer.number, offerFile(this.#context, source, verified));
      return;
    }
    await this.#store.removeOthers(writer.number);
    await this.#store.noteUse(clock.nowMs());
    const { current } = await this.#store.versions();
    if (current === undefined) throw new TypeError(`the browser's storage lost ${file.url}`);
    const source = () => storedSource(this.#context, this.#store, current, true);
    arrival.finish(await source(), intake);
    // A source of its own, because the source of the loader reads ahead.
    void offerFile(this.#context, await source(), verified);
  }

  /**
   * The validators of the stored version, if it has the same bytes as the new one: a server of several replicas may state others at
   * each request.
   */
  async #aliases(intake: Intake, { sizeBytes, etag, lastModified }: FileVersion) {
    const { current } = await this.#store.versions();
    const { file, chunkBytes } = this.#context;
    if (current === undefined) return [];
    const { note } = current;
    const hashes = await this.#store.hashes(current);
    const isSame =
      note.sizeBytes === sizeBytes &&
      note.chunkBytes === chunkBytes &&
      new URL(note.url).origin === new URL(file.url).origin &&
      intake.hashes.every((hash, index) => sameBytes(hash, hashes[index] ?? new Uint8Array()));
    if (!isSame) return [];
    const known = [{ etag: note.etag, lastModified: note.lastModified }, ...(note.aliases ?? [])];
    const isOther = (alias: Validators) =>
      alias.etag !== etag || alias.lastModified !== lastModified;
    return known.filter(isOther).slice(0, MOST_ALIASES);
  }

  /** Files in a storage that was too small are of no use, but they are read until the load has ended. */
  async #removeAfterRead(version: number, offered: Promise<void>): Promise<void> {
    const { reading } = this.#context;
    if (reading === undefined) return;
    if (!reading.aborted)
      await new Promise((resolve) => reading.addEventListener("abort", resolve));
    await offered;
    const remove = (lock: Lock | null) => lock && this.#store.remove(version);
    // A tab that holds the lock goes on with the version.
    await locks().request(entryLock(this.#store.name), { ifAvailable: true }, remove);
  }

  /** Opens the version that broke off, or a new one. */
  async #open(next: StoredVersion | undefined, newest: number): Promise<VersionWriter> {
    const { file, clock } = this.#context;
    // The number of a version that was removed must not come back: another tab may be reading it.
    const fresh = Math.max(newest + 1, Math.floor(clock.nowMs()));
    const open = (number: number) => this.#store.writer(number, file.url, clock.nowMs());
    try {
      if (next === undefined) return await open(fresh);
      // A frozen tab may still hold its files.
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
      await writer.truncate(0);
      return;
    }
    // The last chunk is fetched again, because a request for no bytes would not show the version.
    const last = Math.ceil((note.sizeBytes ?? Number.POSITIVE_INFINITY) / chunkBytes) - 1;
    const chunks = Math.min(Math.floor(storedBytes / chunkBytes), last);
    const hashes = (await this.#store.hashes(next)).slice(0, Math.max(0, chunks));
    if (writer.number !== number) {
      const data = await this.#store.data(number);
      await writer.describe(note);
      for (const [index, hash] of hashes.entries()) {
        signal.throwIfAborted();
        const chunk = data.slice(index * chunkBytes, (index + 1) * chunkBytes);
        await writer.put(index, new Uint8Array(await chunk.arrayBuffer()), hash);
      }
    }
    // Validators of a mirror are not valid at this server, so the file is read from its start and compared.
    const isMirror = new URL(note.url).origin !== new URL(this.#context.file.url).origin;
    const version = isMirror ? { ...note, etag: null, lastModified: null } : note;
    await intake.resume(hashes, version, signal);
  }
}

/** The part of a message that says how many bytes are missing; empty if that is unknown. */
function missing({ position, version }: Intake): string {
  const sizeBytes = version?.sizeBytes;
  if (sizeBytes === undefined) return "";
  return `: ${megabytes(sizeBytes - position)} of ${megabytes(sizeBytes)} are missing`;
}
