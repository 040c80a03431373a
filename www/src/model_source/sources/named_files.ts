//! Opens a model's files by name, each once. The caller chooses how a file is opened; Rust parses them.

import type { ModelLocation } from "../../exchange/protocol.js";
import { cacheKey } from "../store/cache_key.js";
import { NoSuchFile } from "../store/failure.js";
import type { ModelFiles, ModelSource } from "../../byte_source.js";

/** Present in every Hugging Face folder of a model. */
export const FOLDER_CONFIG = "config.json";
/** Present in every folder of a LoRA adapter. */
export const ADAPTER_CONFIG = "adapter_config.json";

/** The end of the name of a part of a split GGUF file. */
const PART = /-\d{5}(-of-\d{5}\.gguf)$/;
const FIRST_PART = "-00001$1";

type RemoteLocation = Extract<ModelLocation, { kind: "url" }>;

/** A file on the network. */
export interface RemoteFile {
  name: string;
  /** The same file on several servers, tried in order. */
  urls: readonly string[];
  /** Identifies the file in the cache. */
  key: string;
  /** The expected SHA-256, if the app gave one. */
  sha256: string | undefined;
}

/** Opens the files of a location. */
export interface Openers {
  /** @throws NoSuchFile if the server has no such file */
  url(file: RemoteFile): Promise<ModelSource>;
  blob(blob: Blob): ModelSource;
}

/**
 * The files that `read` finds; `ggufName` may be any part of a split GGUF file. The first file is opened here: a
 * GGUF file, the first of its parts, or a folder's `config`.
 *
 * @throws NoSuchFile if the first file does not exist
 */
export async function namedFiles(
  ggufName: string | undefined,
  read: (name: string) => Promise<ModelSource | undefined>,
  config = FOLDER_CONFIG,
): Promise<ModelFiles> {
  // One source per file, because a source continues from what it has read.
  const opened = new Map<string, Promise<ModelSource | undefined>>();
  const files = {
    ggufName: ggufName?.replace(PART, FIRST_PART),
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

/** The cache key of the first file of a location on the network. */
export function firstKey({ urls, ggufName, ignoreQuery }: RemoteLocation): string {
  const [url = ""] = urls;
  const name = ggufName === undefined ? FOLDER_CONFIG : ggufName.replace(PART, FIRST_PART);
  return cacheKey(name === ggufName ? url : sibling(url, name), ignoreQuery);
}

/** The files of a location. A 404 for the first file is an error; for any other it means there is no such file. */
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
  const { urls, ignoreQuery, sha256 } = location;
  let isFirst = true;
  const read = async (name: string) => {
    const isNeeded = isFirst;
    isFirst = false;
    // The given URLs are used as they are: a name does not have their query.
    const placed = name === ggufName ? urls : urls.map((url) => sibling(url, name));
    const key = cacheKey(placed[0] ?? "", ignoreQuery);
    try {
      return await open.url({ name, urls: placed, key, sha256: sha256[name] });
    } catch (error) {
      if (!(error instanceof NoSuchFile)) throw error;
      if (!isNeeded) return undefined;
      if (ggufName !== undefined) throw error;
      // Many repositories of hubs have GGUF files only.
      throw new NoSuchFile(
        `${error.message}; a folder of safetensors has this file, and a GGUF file is named by its own URL`,
      );
    }
  };
  return namedFiles(ggufName, read, config);
}

/** The URL of another file in the same folder or, as `1_Pooling/config.json`, below it, with the same query. */
function sibling(url: string, name: string): string {
  const other = new URL(url);
  const path = name.split("/").map(encodeURIComponent).join("/");
  other.pathname = other.pathname.replace(/[^/]*$/, path);
  return other.href;
}
