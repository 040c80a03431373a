//! A file on the network, and what its source needs from outside.

import type { CrossOriginUse } from "../../exchange/protocol.js";
import type { Clock } from "./clock.js";
import type { FetchFile } from "./http.js";
import { BlobStore } from "../store/chunk_store.js";
import type { CreateHasher, Hasher } from "../store/hash.js";
import { Intake } from "./intake.js";
import type { OnBytes } from "../../byte_source.js";
import type { Transfer } from "./transfer.js";

export interface UrlFile {
  url: string;
  /** Identifies the file in the cache. */
  key: string;
  /** The SHA-256 that the app expects, in lower-case hexadecimal digits. */
  sha256: string | undefined;
  fetchFile: FetchFile;
}

/**
 * The place where the bytes of a file are kept: `opfs`, `disk` and `cache` (the Cache API) for the next visit; `cross-origin` for several
 * sites, by the browser; `memory` and `none` (it is read by range requests, each byte when it is needed) for this visit only.
 */
export interface StorageReport {
  url: string;
  storage: "opfs" | "disk" | "cache" | "cross-origin" | "memory" | "none";
  /** The reason why the file is not kept for the next visit; undefined if the app did not want it to be. */
  reason: string | undefined;
}

export interface SourceOptions {
  /** Keep the file for the next visit. */
  cache: boolean;
  signal: AbortSignal;
  /** Aborts when the file is no longer read. */
  reading?: AbortSignal | undefined;
  /** Bytes that have arrived from the network. */
  onBytes: OnBytes;
  /** The bytes of another tab, which downloads the file. */
  onWaiting?: OnBytes | undefined;
  onStorage?: ((report: StorageReport) => void) | undefined;
  /** A message for the developer. The load continues. */
  onWarning?: ((message: string) => void) | undefined;
  /** The file is read only when it is complete and verified. If it is not what it should be, another server is asked. */
  verifiesFirst?: boolean | undefined;
  /** Another server is asked if this one fails: see `Transfer`. */
  hasMirror?: boolean | undefined;
  /** Creates the hash of a whole file; without it, only chunks are verified. */
  createHasher?: CreateHasher | undefined;
  /** The use of the storage that sites share; undefined: it is not used. */
  crossOrigin?: CrossOriginUse | undefined;
  /** The clock; tests give their own. */
  clock?: Clock;
  /** The size of a chunk; tests give their own. */
  chunkBytes?: number;
  /** The number of bytes that are read at once; tests give their own. */
  windowBytes?: number;
}

export interface Context {
  verifiesFirst: boolean;
  hasMirror: boolean;
  file: UrlFile;
  signal: AbortSignal;
  reading: AbortSignal | undefined;
  clock: Clock;
  chunkBytes: number;
  windowBytes: number;
  createHasher: CreateHasher | undefined;
  crossOrigin: CrossOriginUse | undefined;
  onBytes: OnBytes;
  onWaiting: OnBytes;
  warn: (message: string) => void;
  report: (storage: StorageReport["storage"], reason?: string) => void;
}

export const jobOf = ({ file, clock, signal, hasMirror }: Context): Transfer => ({
  url: file.url,
  fetchFile: file.fetchFile,
  clock,
  signal,
  hasMirror,
});

/** The hash that the file must have, if it is known and can be computed. */
function expectedHash({ file, createHasher }: Context, intake: Intake): string | undefined {
  return createHasher && (file.sha256 ?? intake.version?.sha256);
}

/**
 * Compares a file that has arrived with the hash that it must have; gives the hash, if there was one.
 *
 * @throws TypeError if it has another hash
 */
export async function verifyHash(context: Context, intake: Intake): Promise<string | undefined> {
  if (context.file.sha256 !== undefined && context.createHasher === undefined) {
    throw new TypeError(`the SHA-256 of ${context.file.url} cannot be computed here`);
  }
  const expected = expectedHash(context, intake);
  if (expected === undefined || context.createHasher === undefined) return undefined;
  const hash = await intake.wholeHash(context.createHasher);
  if (hash === expected) return hash;
  const { url, sha256 } = context.file;
  const whose = sha256 === undefined ? "the server states" : "expected is";
  throw new WrongHash(
    `${url} has the SHA-256 ${hash}, but ${whose} ${expected}: the file was damaged in transit, or it is a different file`,
  );
}

/** A hash of the whole file, if one is expected. */
export async function hasherFor(context: Context, intake: Intake): Promise<Hasher | undefined> {
  return expectedHash(context, intake) === undefined ? undefined : context.createHasher?.();
}

export class WrongHash extends TypeError {}

/** The intake of a file that is kept in memory. */
export function memoryIntake(context: Context, onArrived: (intake: Intake) => void): Intake {
  const { file, chunkBytes } = context;
  const intake: Intake = new Intake({
    url: file.url,
    chunkBytes,
    store: new BlobStore(),
    createHasher: () => hasherFor(context, intake),
    onArrived: () => onArrived(intake),
  });
  return intake;
}
