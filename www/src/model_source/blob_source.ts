//! A local `File`, a `Blob`, or a file of the origin's private file system: read by slices, so the
//! browser keeps the bytes, not the page.

import { type ModelSource, checkRange } from "./source.js";

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
