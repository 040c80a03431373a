//! Reads a local `File`, a `Blob` or a file of the origin private file system in slices, so that the bytes do
//! not have to fit into the page's memory.

import { type ModelSource, checkRange } from "../../byte_source.js";

export function blobSource(blob: Blob): ModelSource {
  const source: ModelSource = {
    size: blob.size,
    async read(offset, length) {
      checkRange(source, offset, length);
      return new Uint8Array(await blob.slice(offset, offset + length).arrayBuffer());
    },
  };
  return source;
}
