//! The interfaces through which the Rust side reads a model's files.

/** Random access to the bytes of one file. */
export interface ModelSource {
  readonly size: number;
  /** Exactly `length` bytes from `offset` on. The array may be a view that is valid only until the next read. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** The files of a model, as the Rust side requests them. */
export interface ModelFiles {
  /** The GGUF file or the first of its parts; `undefined` for a Hugging Face folder. */
  readonly ggufName: string | undefined;
  /** The total size of the files that were opened so far. */
  readonly openedBytes: number;
  /** `undefined` if there is no such file. */
  open(name: string): Promise<ModelSource | undefined>;
}

/** Called after each chunk that arrived; `isWaiting` if another tab downloads the file. */
export type OnBytes = (
  loadedBytes: number,
  totalBytes: number | undefined,
  isWaiting?: boolean,
) => void;

/** @throws RangeError unless the range lies inside the file */
export function checkRange(source: ModelSource, offset: number, length: number): void {
  if (offset < 0 || length < 0 || offset + length > source.size) {
    throw new RangeError(
      `bytes ${offset}..${offset + length} lie outside the model file of ${source.size} bytes`,
    );
  }
}
