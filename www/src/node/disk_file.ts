//! Reads a file on disk in place. Only the requested bytes are read, so that its size does not matter.

import { open, stat } from "node:fs/promises";
import { type ModelSource, checkRange } from "../byte_source.js";

/**
 * `undefined` if there is no such file. It is open only while it is read, and must not change while a model is loaded.
 *
 * @throws Error naming the path, if it is not a file or cannot be read
 */
export async function fileSource(path: string): Promise<ModelSource | undefined> {
  const about = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (about === undefined) return undefined;
  if (!about.isFile()) throw new Error(`${path} is not a file`);
  const source: ModelSource = {
    size: about.size,
    async read(offset, length) {
      checkRange(source, offset, length);
      const bytes = await readRange(path, offset, length, ({ size, mtimeMs }) => {
        if (size === about.size && mtimeMs === about.mtimeMs) return;
        throw new Error(`${path} has changed while it was read`);
      });
      if (bytes.length < length)
        throw new Error(`${path} ends after ${offset + bytes.length} bytes`);
      return bytes;
    },
  };
  return source;
}

/** The bytes from `offset` on: `length`, or fewer if the file ends before. `check` gets what is known of the open file. */
export async function readRange(
  path: string,
  offset: number,
  length: number,
  check?: (about: { size: number; mtimeMs: number }) => void,
): Promise<Uint8Array<ArrayBuffer>> {
  const file = await open(path);
  try {
    check?.(await file.stat());
    const bytes = new Uint8Array(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  } finally {
    await file.close();
  }
}
