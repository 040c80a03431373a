//! A file that is read by HTTP range requests, and the part of a file that one transfer fetches.

import { type ModelSource, checkRange } from "../../byte_source.js";
import { type Sink, type Transfer, changed, transfer } from "../transfer/transfer.js";
import { type FileVersion, isCurrent } from "../store/version.js";

/** Collects the bytes from `startBytes` to `endBytes`; takes a whole file, too. */
export class PartSink implements Sink {
  readonly startBytes: number;
  readonly bytes: Uint8Array<ArrayBuffer>;
  position: number;
  version: FileVersion | undefined;

  /** With `version`, bytes of any other version are refused; without, the caller checks the bytes. */
  constructor(startBytes: number, endBytes: number, version?: FileVersion) {
    this.startBytes = startBytes;
    this.position = startBytes;
    this.bytes = new Uint8Array(endBytes - startBytes);
    this.version = version;
  }

  begin(startBytes: number, version: FileVersion): void {
    this.position = startBytes;
    this.version ??= version;
  }

  accept(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { length } = this.bytes;
    const at = this.position - this.startBytes;
    const piece = at < 0 ? bytes.subarray(-at) : bytes;
    const target = Math.max(0, at);
    if (target < length) this.bytes.set(piece.subarray(0, length - target), target);
    this.position += bytes.length;
    return Promise.resolve();
  }
}

/**
 * `first` are the first bytes of the file, which have been fetched already. The answers must show that they belong to `version`; with
 * `isLenient` it is enough if none contradicts it.
 */
export function rangeSource(
  job: Transfer,
  version: FileVersion,
  first: Uint8Array<ArrayBuffer> = new Uint8Array(),
  isLenient = false,
): ModelSource {
  const source: ModelSource = {
    size: version.sizeBytes ?? 0,
    async read(offset, length) {
      checkRange(source, offset, length);
      const endBytes = offset + length;
      if (endBytes <= first.length) return first.subarray(offset, endBytes);
      if (length === 0) return new Uint8Array();
      const sink = new PartSink(offset, endBytes, isLenient ? undefined : version);
      await transfer({ ...job, endBytes }, sink);
      if (sink.version && !isCurrent(version, sink.version)) throw changed(job.url);
      return sink.bytes;
    },
  };
  return source;
}
