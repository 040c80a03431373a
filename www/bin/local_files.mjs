//! The files of a model on disk as `ModelFiles`. Only the requested bytes are read.

import { stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { namedFiles } from "../dist/model_source/sources/named_files.js";
import { fileSource } from "../dist/node/disk_file.js";
import { isOfFolder } from "../dist/node/local_place.js";

/**
 * A GGUF file with the other parts in its folder, or a Hugging Face folder, given by its path or that of one of its
 * files.
 *
 * @throws Error naming the path, if the first file cannot be opened
 */
export async function openLocal(path) {
  const isFolder = (await stat(path)).isDirectory();
  const name = isFolder || isOfFolder(basename(path)) ? undefined : basename(path);
  const folder = isFolder ? path : dirname(path);
  try {
    return await namedFiles(name, (name) => fileSource(join(folder, name)));
  } catch (error) {
    throw new Error(`${path}: ${error.message}`);
  }
}
