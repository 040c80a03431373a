//! Opens the files of a model to learn what they say of it: of files with tensors no more is read than
//! is asked for. Stores nothing.

import type { ModelLocation } from "../exchange/protocol.js";
import { blobSource } from "./blob_source.js";
import { type HeadSource, openHead } from "./head_source.js";
import { fetchWhole } from "./http.js";
import { locatedFiles } from "./named_files.js";
import type { ModelFiles } from "./source.js";

/** To be closed when all is read. */
export interface HeadFiles extends ModelFiles {
  close(): Promise<void>;
}

/**
 * Headers are read one after the other: opening a file ends what a server still sends of the last one, for
 * browsers keep few connections to it.
 *
 * @throws TypeError if the first file cannot be had, naming it
 */
export async function openHeads(location: ModelLocation, signal: AbortSignal): Promise<HeadFiles> {
  let last: HeadSource | undefined;
  const isWithTensors = (name: string) =>
    location.ggufName !== undefined || name.endsWith(".safetensors");
  const files = await locatedFiles(location, {
    async url(url, name) {
      // The others are small, and servers that compress them tell no size.
      if (!isWithTensors(name)) return blobSource(await fetchWhole(url, signal));
      await last?.close();
      last = await openHead(url, signal);
      return last;
    },
    blob: blobSource,
  });
  return Object.assign(files, { close: async () => last?.close() });
}
