//! Where a model's bytes come from, as the Rust side reads them. Knows nothing of their meaning.

/** Random access to the bytes of one of a model's files. */
export interface ModelSource {
  readonly size: number;
  /** Exactly `length` bytes from `offset` on. The array may be a view: use it before the next read. */
  read(offset: number, length: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** The files that make up a model, as the Rust side asks for them. */
export interface ModelFiles {
  /** The GGUF file, or the first of its parts; a Hugging Face folder has none. */
  readonly ggufName: string | undefined;
  /** Bytes of the files that were opened so far. */
  readonly openedBytes: number;
  /** `undefined` if there is no such file. */
  open(name: string): Promise<ModelSource | undefined>;
}

/** Told after each piece that arrived. */
export type OnBytes = (loadedBytes: number, totalBytes: number | undefined) => void;

/** @throws RangeError unless the range lies inside the file */
export function checkRange(source: ModelSource, offset: number, length: number): void {
  if (offset < 0 || length < 0 || offset + length > source.size) {
    throw new RangeError(
      `bytes ${offset}..${offset + length} lie outside the model file of ${source.size} bytes`,
    );
  }
}
