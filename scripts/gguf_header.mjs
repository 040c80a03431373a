//! Reads and rewrites headers of GGUF files, for files that are too large to keep: their tensors may lie anywhere, and
//! the server of `sparse_server.mjs` invents what is not given.

const DEFAULT_ALIGNMENT = 32;
const [U32, STRING, ARRAY] = [4, 8, 9];
/** Sizes of the metadata types with a fixed one, by their numbers. */
const SIZES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

/** Types of tensors by name: number, elements and bytes of a block. */
export const TENSOR_TYPES = {
  F32: { id: 0, elements: 1, bytes: 4 },
  Q4_0: { id: 2, elements: 32, bytes: 18 },
  Q8_0: { id: 8, elements: 32, bytes: 34 },
};

const aligned = (offset) => Math.ceil(offset / DEFAULT_ALIGNMENT) * DEFAULT_ALIGNMENT;

/**
 * The header of a file without `general.alignment`: its metadata as bytes, the positions of the u32 values in these
 * bytes by key, and the tensors, whose offsets are those in the file.
 */
export function readHeader(file) {
  let at = 8;
  /** Skips `bytes` bytes and returns the offset of the first. */
  const next = (bytes) => {
    at += bytes;
    return at - bytes;
  };
  const u32 = () => file.readUInt32LE(next(4));
  const u64 = () => Number(file.readBigUInt64LE(next(8)));
  const string = () => {
    const start = next(u64());
    return file.toString("utf8", start, at);
  };
  const skip = (type) => {
    if (type === STRING) string();
    else if (type !== ARRAY) next(SIZES[type]);
    else for (let [of, count] = [u32(), u64()]; count > 0; count--) skip(of);
  };
  const [tensorCount, entryCount] = [u64(), u64()];
  const start = at;
  const numbers = new Map();
  for (let i = 0; i < entryCount; i++) {
    const key = string();
    const type = u32();
    if (type === U32) numbers.set(key, at - start);
    skip(type);
  }
  const metadata = file.subarray(start, at);
  const tensors = Array.from({ length: tensorCount }, () => {
    const name = string();
    const dims = Array.from({ length: u32() }, u64);
    return { name, dims, type: u32(), offset: u64() };
  });
  const dataStart = aligned(at);
  for (const tensor of tensors) tensor.offset += dataStart;
  return { metadata, entryCount, numbers, tensors };
}

/** A header with other tensors and with u32 values of the metadata replaced. `tensors` have offsets in the file. */
export function writeHeader({ metadata, entryCount, numbers }, tensors, values = {}) {
  const changed = Buffer.from(metadata);
  for (const [key, value] of Object.entries(values)) {
    changed.writeUInt32LE(value, numbers.get(key));
  }
  const number = (value, bytes) => {
    const buffer = Buffer.alloc(8);
    buffer.writeBigUInt64LE(BigInt(value));
    return buffer.subarray(0, bytes);
  };
  const head = [Buffer.from("GGUF"), number(3, 4), number(tensors.length, 8)];
  const write = (dataStart) => {
    const infos = tensors.flatMap(({ name, dims, type, offset }) => [
      ...[number(Buffer.byteLength(name), 8), Buffer.from(name), number(dims.length, 4)],
      ...dims.map((dim) => number(dim, 8)),
      ...[number(type, 4), number(offset - dataStart, 8)],
    ]);
    return Buffer.concat([...head, number(entryCount, 8), changed, ...infos]);
  };
  const dataStart = headerBytes({ metadata }, tensors);
  return Buffer.concat([write(dataStart)], dataStart);
}

/** The size of such a header with its padding: the offset of the first tensor. */
export function headerBytes({ metadata }, tensors) {
  const infos = tensors.map(
    ({ name, dims }) => 8 + Buffer.byteLength(name) + 4 + 8 * dims.length + 12,
  );
  return aligned(24 + metadata.length + infos.reduce((sum, bytes) => sum + bytes, 0));
}

/**
 * A model of the Llama architecture as large as wanted, all of whose weights are zero: its header, and the size of the
 * file. `small` is the file of a small model, whose tokenizer and heads it takes.
 */
export function zeroLlama(small, { layers, heads, kvHeads, headDim, ffnDim, type = "Q4_0" }) {
  const header = readHeader(small);
  const dim = heads * headDim;
  const vocab = header.tensors.find(({ name }) => name === "token_embd.weight").dims[1];
  const matrix = (name, cols, rows) => ({ name: `${name}.weight`, dims: [cols, rows], of: type });
  const vector = (name) => ({ name: `${name}.weight`, dims: [dim], of: "F32" });
  const layer = (index) => {
    const [q, kv] = [heads * headDim, kvHeads * headDim];
    const part = (name) => `blk.${index}.${name}`;
    return [
      matrix(part("attn_q"), dim, q),
      matrix(part("attn_k"), dim, kv),
      matrix(part("attn_v"), dim, kv),
      matrix(part("attn_output"), q, dim),
      matrix(part("ffn_gate"), dim, ffnDim),
      matrix(part("ffn_up"), dim, ffnDim),
      matrix(part("ffn_down"), ffnDim, dim),
      vector(part("attn_norm")),
      vector(part("ffn_norm")),
    ];
  };
  const tensors = [
    matrix("token_embd", dim, vocab),
    ...Array.from({ length: layers }, (_, index) => layer(index)).flat(),
    vector("output_norm"),
  ];
  let sizeBytes = headerBytes(header, tensors);
  for (const tensor of tensors) {
    const { id, elements, bytes } = TENSOR_TYPES[tensor.of];
    tensor.type = id;
    tensor.offset = sizeBytes;
    const count = tensor.dims.reduce((product, size) => product * size, 1);
    sizeBytes = aligned(sizeBytes + (count / elements) * bytes);
  }
  const values = {
    "llama.block_count": layers,
    "llama.embedding_length": dim,
    "llama.attention.head_count": heads,
    "llama.attention.head_count_kv": kvHeads,
    "llama.attention.key_length": headDim,
    "llama.attention.value_length": headDim,
    "llama.rope.dimension_count": headDim,
    "llama.feed_forward_length": ffnDim,
  };
  return { header: writeHeader(header, tensors, values), sizeBytes };
}
