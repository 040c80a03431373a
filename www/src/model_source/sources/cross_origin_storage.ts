//! The storage that all sites of a browser share (a proposal: https://wicg.github.io/cross-origin-storage/), which knows files by their
//! SHA-256. Reads from it and offers files to it where the app has asked for that. What is read is verified like a download.

import { messageOf } from "../../exchange/error_response.js";
import type { CrossOriginUse } from "../../exchange/protocol.js";
import type { Arrival } from "./arrival.js";
import { readAhead } from "../transfer/read_ahead.js";
import { versionNow } from "../transfer/revalidation.js";
import { type ModelSource, checkRange } from "../../byte_source.js";
import type { Context } from "../transfer/url_file.js";

/** `navigator.crossOriginStorage`, of the draft of 2026. No browser has it yet. */
interface CrossOriginStorage {
  requestFileHandle(
    hash: { algorithm: "SHA-256"; value: string },
    options?: { create?: boolean; origins?: string | readonly string[] },
  ): Promise<FileSystemFileHandle>;
}

function storageOf(): CrossOriginStorage | undefined {
  // Node may have no navigator.
  const { crossOriginStorage } = (globalThis.navigator ?? {}) as {
    crossOriginStorage?: CrossOriginStorage;
  };
  const isKnown = typeof crossOriginStorage?.requestFileHandle === "function";
  return isKnown ? crossOriginStorage : undefined;
}

/** The error of `requestFileHandle` for a file that is not there, is kept from this site, or is being written. */
const ABSENT = ["NotFoundError", "NotAllowedError"];

/**
 * Gives `arrival` the file, if the storage has it, the app wants it from there and its SHA-256 is known.
 *
 * @returns false if the file must be downloaded
 */
export async function crossOriginSource(context: Context, arrival: Arrival): Promise<boolean> {
  const storage = storageOf();
  const { crossOrigin, createHasher, file, signal, warn } = context;
  if (!crossOrigin?.read || storage === undefined || createHasher === undefined) return false;
  const value = file.sha256 ?? (await statedHash(context));
  if (value === undefined) return false;
  try {
    const handle = await storage.requestFileHandle({ algorithm: "SHA-256", value });
    const stored = await handle.getFile();
    const hasher = await createHasher();
    for (let offset = 0; offset < stored.size; offset += context.chunkBytes) {
      signal.throwIfAborted();
      const chunk = stored.slice(offset, offset + context.chunkBytes);
      hasher.update(new Uint8Array(await chunk.arrayBuffer()));
    }
    if ((await hasher.finish()) !== value) throw new TypeError("its bytes have another SHA-256");
    context.report("cross-origin");
    arrival.finish(readAhead(storedSource(stored, file.url), context.windowBytes));
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof DOMException && ABSENT.includes(error.name))) {
      warn(`${file.url} could not be read from cross-origin storage: ${messageOf(error)}`);
    }
    return false;
  }
}

/** The hash that the server states without sending the file. */
async function statedHash(context: Context): Promise<string | undefined> {
  const now = await versionNow(context);
  return now instanceof Error ? undefined : now.sha256;
}

function storedSource(stored: File, url: string): ModelSource {
  const source: ModelSource = {
    size: stored.size,
    async read(offset, length) {
      checkRange(source, offset, length);
      try {
        const bytes = await stored.slice(offset, offset + length).arrayBuffer();
        if (bytes.byteLength === length) return new Uint8Array(bytes);
      } catch {
        // The browser has removed it.
      }
      throw new TypeError(`cross-origin storage lost ${url}: load the model again`);
    },
  };
  return source;
}

/** Offers a file that was downloaded and has the hash `sha256`, if the app wants that. Failures are only reported. */
export async function offerFile(
  { crossOrigin, chunkBytes, signal, file, warn }: Context,
  source: ModelSource,
  sha256: string | undefined,
): Promise<void> {
  const storage = storageOf();
  const offer = crossOrigin?.offer;
  if (offer === undefined || storage === undefined || sha256 === undefined) return;
  try {
    const options = { create: true, ...originsOf(offer) };
    const hash = { algorithm: "SHA-256", value: sha256 } as const;
    const handle = await storage.requestFileHandle(hash, options);
    const writable = await handle.createWritable();
    try {
      for (let offset = 0; offset < source.size; offset += chunkBytes) {
        signal.throwIfAborted();
        const length = Math.min(chunkBytes, source.size - offset);
        // The bytes may be a view that is valid only until the next read.
        await writable.write((await source.read(offset, length)).slice());
      }
      await writable.close();
    } catch (error) {
      await writable.abort().catch(() => {});
      throw error;
    }
  } catch (error) {
    if (signal.aborted) return;
    warn(`${file.url} could not be offered to cross-origin storage: ${messageOf(error)}`);
  }
}

/** Without `origins`, the file is for the site itself. */
function originsOf(offer: NonNullable<CrossOriginUse["offer"]>) {
  return offer === "same-site" ? {} : { origins: offer };
}
