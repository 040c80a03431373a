//! Opens the files of the model that the page named. The rest of the worker sees `ModelFiles` only.

import type { LoadProgress, ModelLocation } from "../protocol.js";
import { blobSource } from "./blob_source.js";
import { NoSuchFile } from "./http.js";
import { readAhead } from "./read_ahead.js";
import type { ModelFiles, ModelSource, OnBytes } from "./source.js";
import { urlSource } from "./url_source.js";

/** What every Hugging Face folder of a model has. */
const MODEL_CONFIG = "config.json";
/** What every folder of a low-rank adapter has. */
export const ADAPTER_CONFIG = "adapter_config.json";

/**
 * The first file is open: a GGUF file, the first of its parts, or a folder's `config`.
 *
 * @throws TypeError if that one cannot be had
 */
export async function openModel(
  location: ModelLocation,
  onProgress: (progress: LoadProgress) => void,
  signal: AbortSignal,
  config = MODEL_CONFIG,
): Promise<ModelFiles> {
  signal.throwIfAborted();
  const first = location.ggufName ?? config;
  const { ggufName, read } = filesAt(location, first, total(onProgress), signal);
  // Of each file one source: it goes on with what it has read.
  const opened = new Map<string, Promise<ModelSource | undefined>>();
  const files = {
    ggufName,
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
  if ((await files.open(first)) === undefined) throw new NoSuchFile(`there is no file ${first}`);
  return files;
}

interface Files {
  ggufName: string | undefined;
  read(name: string): Promise<ModelSource | undefined>;
}

function filesAt(
  location: ModelLocation,
  first: string,
  onBytesOf: OnBytesOf,
  signal: AbortSignal,
): Files {
  if (location.kind === "files") {
    const byName = new Map(location.files.map(({ name, blob }) => [name, blob]));
    return {
      ggufName: location.ggufName,
      async read(name) {
        const blob = byName.get(name);
        return blob && readAhead(blobSource(blob));
      },
    };
  }
  const { url, cache, ggufName } = location;
  return {
    ggufName,
    async read(name) {
      try {
        // The URL as it was given: no name stands for all that it may say.
        const of = name === ggufName ? url : sibling(url, name);
        return await urlSource(of, cache, onBytesOf(name), signal);
      } catch (error) {
        if (error instanceof NoSuchFile && name !== first) return undefined;
        throw error;
      }
    },
  };
}

/** The file of this name beside the last one of the path, with the same query. */
function sibling(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = other.pathname.replace(/[^/]*$/, encodeURIComponent(name));
  return other.href;
}

type OnBytesOf = (name: string) => OnBytes;

/** The progress of all downloads together; their total is unknown as long as that of one is. */
function total(onProgress: (progress: LoadProgress) => void): OnBytesOf {
  const downloads = new Map<string, [loaded: number, total: number | undefined]>();
  return (name) => (loaded, total) => {
    downloads.set(name, [loaded, total]);
    let loadedBytes = 0;
    let totalBytes: number | undefined = 0;
    for (const [loaded, total] of downloads.values()) {
      loadedBytes += loaded;
      totalBytes = total === undefined || totalBytes === undefined ? undefined : totalBytes + total;
    }
    onProgress({ phase: "download", loadedBytes, totalBytes });
  };
}
