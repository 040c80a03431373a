//! A model's GGUF file that recommends temperature 0, so that requests of an app that name no temperature are answered the same each time.

import assert from "node:assert/strict";

const ALIGNMENT_BYTES = 32;
/** The magic number, the version, and the counts of tensors and of metadata. */
const HEAD_BYTES = 24;
const COUNT_OFFSET = 16;
/** Types of metadata. */
const F32 = 6;
const STRING = 8;

function integer(value, bytes) {
  const buffer = Buffer.alloc(8);
  buffer.writeBigUInt64LE(BigInt(value));
  return buffer.subarray(0, bytes);
}

const entry = (key, type, value) =>
  Buffer.concat([integer(key.length, 8), Buffer.from(key), integer(type, 4), value]);

/** The bytes of the file `model` with the recommendation. */
export function greedy(model) {
  const temperature = entry("general.sampling.temp", F32, Buffer.alloc(4));
  // The tensors' offsets hold only for a header that grows by a multiple of the alignment.
  const padding = entry("padding", STRING, integer(0, 8));
  assert.equal((temperature.length + padding.length) % ALIGNMENT_BYTES, 0);
  const head = Buffer.from(model.subarray(0, HEAD_BYTES));
  head.writeBigUInt64LE(head.readBigUInt64LE(COUNT_OFFSET) + 2n, COUNT_OFFSET);
  return Buffer.concat([head, temperature, padding, model.subarray(HEAD_BYTES)]);
}
