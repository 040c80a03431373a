//! The files of a model on disk as `ModelFiles`. Only the requested bytes are read.

import { open, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { namedFiles } from "../dist/model_source/named_files.js";

/**
 * A GGUF file with the other parts in its folder, or a Hugging Face folder, given by its path or that of one of its
 * files. Must be closed.
 *
 * @throws Error naming the path, if the first file cannot be opened
 */
export async function openLocal(path, isOfFolder) {
  const isFolder = (await stat(path)).isDirectory();
  const name = isFolder || isOfFolder(basename(path)) ? undefined : basename(path);
  const folder = isFolder ? path : dirname(path);
  const opened = [];
  const close = () => Promise.all(opened.map((source) => source.close()));
  try {
    const files = await namedFiles(name, async (name) => {
      const source = await openFile(join(folder, name));
      if (source !== undefined) opened.push(source);
      return source;
    });
    return Object.assign(files, { close });
  } catch (error) {
    await close();
    throw new Error(`${path}: ${error.message}`);
  }
}

/** `undefined` if there is no such file. */
async function openFile(path) {
  const file = await open(path).catch((error) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (file === undefined) return undefined;
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
