//! SHA-256: of a chunk, and of a whole file that comes in pieces.

import { HASH_BYTES } from "./cache_layout.js";

/** A hash of bytes that come in pieces. */
export interface Hasher {
  update(bytes: Uint8Array): void;
  /** Lower-case hexadecimal digits; may be called once. */
  finish(): string | Promise<string>;
}

/** Creates a hasher: the wasm module has it, which may still be arriving. */
export type CreateHasher = () => Promise<Hasher>;

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** The hashes in the content of a file of hashes. */
export function splitHashes(
  bytes: Uint8Array<ArrayBuffer>,
  chunks: number,
): Uint8Array<ArrayBuffer>[] {
  return Array.from({ length: chunks }, (_, index) =>
    bytes.slice(index * HASH_BYTES, (index + 1) * HASH_BYTES),
  );
}
