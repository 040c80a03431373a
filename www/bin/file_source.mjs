//! A local file as a `ModelSource`: what is asked for is read, nothing else. Knows nothing of its meaning.

import { open } from "node:fs/promises";

/** @throws Error naming the path, if it is no file that can be read */
export async function openFile(path) {
  const file = await open(path);
  const about = await file.stat();
  if (!about.isFile()) {
    await file.close();
    throw new Error(`${path} is not a file`);
  }
  return {
    size: about.size,
    async read(offset, length) {
      const bytes = new Uint8Array(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await file.read(bytes, filled, length - filled, offset + filled);
        if (bytesRead === 0) throw new Error(`${path} ends after ${offset + filled} bytes`);
        filled += bytesRead;
      }
      return bytes;
    },
    close: () => file.close(),
  };
}
