//! A model's files by name, each opened once. How one is opened is the caller's choice; what they mean
//! is Rust's business.

import type { ModelLocation } from "../exchange/protocol.js";
import { NoSuchFile } from "./http.js";
import type { ModelFiles, ModelSource } from "./source.js";

/** What every Hugging Face folder of a model has. */
export const FOLDER_CONFIG = "config.json";
/** What every folder of a low-rank adapter has. */
export const ADAPTER_CONFIG = "adapter_config.json";

/** The ending of a part of a split GGUF file. */
const PART = /-\d{5}(-of-\d{5}\.gguf)$/;

/** How the files at a location are opened. */
export interface Openers {
  /** @throws NoSuchFile if the server has no such file */
  url(url: string, name: string): Promise<ModelSource>;
  blob(blob: Blob): ModelSource;
}

/**
 * The files that `read` finds; of a split GGUF file any part may be named. The first file is open: a GGUF
 * file, the first of its parts, or a folder's `config`.
 *
 * @throws NoSuchFile if there is no such file
 */
export async function namedFiles(
  ggufName: string | undefined,
  read: (name: string) => Promise<ModelSource | undefined>,
  config = FOLDER_CONFIG,
): Promise<ModelFiles> {
  // Of each file one source: it goes on with what it has read.
  const opened = new Map<string, Promise<ModelSource | undefined>>();
  const files = {
    ggufName: ggufName?.replace(PART, "-00001$1"),
    openedBytes: 0,
    open(name: string) {
      let source = opened.get(name);
      if (source === undefined) {
        source = read(name).then((source) => {
          files.openedBytes += source?.size ?? 0;
          return source;
        });
        opened.set(name, source);
      }
      return source;
    },
  };
  const first = files.ggufName ?? config;
  if ((await files.open(first)) === undefined) throw new NoSuchFile(`there is no file ${first}`);
  return files;
}

/** The files at a location; a server's word that it has not the first one is its error. */
export function locatedFiles(
  location: ModelLocation,
  open: Openers,
  config = FOLDER_CONFIG,
): Promise<ModelFiles> {
  const { ggufName } = location;
  if (location.kind === "files") {
    const byName = new Map(location.files.map(({ name, blob }) => [name, blob]));
    const read = async (name: string) => {
      const blob = byName.get(name);
      return blob && open.blob(blob);
    };
    return namedFiles(ggufName, read, config);
  }
  const { url } = location;
  let isFirst = true;
  const read = async (name: string) => {
    const isNeeded = isFirst;
    isFirst = false;
    try {
      // The URL as it was given: no name stands for all that it may say.
      return await open.url(name === ggufName ? url : sibling(url, name), name);
    } catch (error) {
      if (error instanceof NoSuchFile && !isNeeded) return undefined;
      throw error;
    }
  };
  return namedFiles(ggufName, read, config);
}

/** The file of this name beside the last one of the path, with the same query. */
function sibling(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = other.pathname.replace(/[^/]*$/, encodeURIComponent(name));
  return other.href;
}
