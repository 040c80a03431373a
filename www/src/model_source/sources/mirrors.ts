//! A file that several servers have: when one fails permanently, the next one is used. Bytes that were already read are
//! read again from the next server and compared, so that two versions are never combined.

import { messageOf } from "../../exchange/error_response.js";
import { shownUrl } from "../store/cache_key.js";
import { NoSuchFile } from "../store/failure.js";
import { type ModelSource, checkRange } from "../../byte_source.js";

/** Opens the file at a URL. */
export type OpenAt<T> = (url: string) => Promise<T>;

/** Reads that follow one another are hashed together, up to this many bytes. */
const RANGE_BYTES = 4 * 1024 * 1024;

/**
 * Opens the file at the first URL that works; its reads move on to the next ones.
 *
 * @throws NoSuchFile if no server has it; TypeError with the failure of each server
 */
export async function openMirrored(
  urls: readonly string[],
  open: OpenAt<ModelSource>,
  signal: AbortSignal,
): Promise<ModelSource> {
  const [only] = urls;
  if (urls.length === 1 && only !== undefined) return open(only);
  const servers = new Servers(urls, signal);
  const source = await servers.next(open);
  return new MirroredSource(source, servers, open);
}

/** Same as `openMirrored`, for a source that is read from one server only. */
export function openFirst<T>(
  urls: readonly string[],
  open: OpenAt<T>,
  signal: AbortSignal,
): Promise<T> {
  return new Servers(urls, signal).next(open);
}

/** The servers that were not tried yet, and the failures of the others. */
class Servers {
  #urls: string[];
  #failures: Error[] = [];
  readonly signal: AbortSignal;

  constructor(urls: readonly string[], signal: AbortSignal) {
    this.#urls = [...urls];
    this.signal = signal;
  }

  failed(error: unknown): void {
    this.#failures.push(error instanceof Error ? error : new TypeError(messageOf(error)));
  }

  /** The result of `open` for the next URL for which it does not fail. */
  async next<T>(open: OpenAt<T>): Promise<T> {
    for (let url = this.#urls.shift(); url !== undefined; url = this.#urls.shift()) {
      try {
        return await open(url);
      } catch (error) {
        this.signal.throwIfAborted();
        this.failed(error);
      }
    }
    const [only, another] = this.#failures;
    if (only !== undefined && another === undefined) throw only;
    const isAbsent = this.#failures.every((error) => error instanceof NoSuchFile);
    const message = this.#failures.map(messageOf).join("; ");
    throw isAbsent ? new NoSuchFile(message) : new TypeError(message);
  }
}

class MirroredSource implements ModelSource {
  readonly size: number;
  #servers: Servers;
  #open: OpenAt<ModelSource>;
  #read = new ReadRanges();
  /** Rejected when no server is left. */
  #current: Promise<ModelSource>;

  constructor(source: ModelSource, servers: Servers, open: OpenAt<ModelSource>) {
    this.size = source.size;
    this.#servers = servers;
    this.#open = open;
    this.#current = Promise.resolve(source);
  }

  async read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    checkRange(this, offset, length);
    for (;;) {
      const current = this.#current;
      const source = await current;
      try {
        const bytes = await source.read(offset, length);
        this.#read.add(offset, bytes);
        return bytes;
      } catch (error) {
        this.#servers.signal.throwIfAborted();
        // Another read may have gone on to the next server already.
        if (this.#current === current) this.#goOn(error);
      }
    }
  }

  #goOn(error: unknown): void {
    this.#servers.failed(error);
    this.#current = this.#servers.next(async (url) => {
      const source = await this.#open(url);
      await this.#compare(url, source);
      return source;
    });
    // A failure while nobody reads must not be reported as an unhandled rejection.
    this.#current.catch(() => {});
  }

  async #compare(url: string, source: ModelSource): Promise<void> {
    if (source.size !== this.size) {
      throw new TypeError(
        `${shownUrl(url)} has ${source.size} bytes, but the server that failed has ${this.size}: they are not mirrors of one file`,
      );
    }
    if (await this.#read.differ(source)) {
      throw new TypeError(
        `${shownUrl(url)} has other bytes than were read from the server that failed`,
      );
    }
  }
}

/** The ranges of bytes that were read, and their hashes. */
class ReadRanges {
  #hashed: { offset: number; length: number; digest: Promise<ArrayBuffer> }[] = [];
  /** The end of what was read in order, not hashed yet. */
  #pieces: Uint8Array<ArrayBuffer>[] = [];
  #offset = 0;
  #length = 0;

  add(offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    const isNext = offset === this.#offset + this.#length;
    if (!isNext || this.#length + bytes.length > RANGE_BYTES) {
      this.#hash();
      this.#offset = offset;
    }
    // A view may be valid only until the next read.
    this.#pieces.push(bytes.slice());
    this.#length += bytes.length;
    if (this.#length >= RANGE_BYTES) {
      this.#hash();
      this.#offset = offset + bytes.length;
    }
  }

  async differ(source: ModelSource): Promise<boolean> {
    this.#hash();
    for (const { offset, length, digest } of this.#hashed) {
      const other = await sha256(await source.read(offset, length));
      if (!sameBytes(await digest, other)) return true;
    }
    return false;
  }

  #hash(): void {
    if (this.#length > 0) {
      const joined = new Blob(this.#pieces).arrayBuffer();
      const digest = joined.then((bytes) => sha256(new Uint8Array(bytes)));
      this.#hashed.push({ offset: this.#offset, length: this.#length, digest });
    }
    this.#offset += this.#length;
    this.#pieces = [];
    this.#length = 0;
  }
}

const sha256 = (bytes: Uint8Array<ArrayBuffer>) => crypto.subtle.digest("SHA-256", bytes);

function sameBytes(one: ArrayBuffer, other: ArrayBuffer): boolean {
  const [a, b] = [new Uint8Array(one), new Uint8Array(other)];
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
