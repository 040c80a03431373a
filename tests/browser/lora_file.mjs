//! A small random LoRA adapter for the embedded model, as a GGUF file.

const U32 = 4;
const F32 = 6;
const STRING = 8;
const ALIGNMENT = 32;

/**
 * An adapter of rank 4 for the tensors `names`, each `[rows, cols]`.
 *
 * @returns {Buffer}
 */
export function loraFile({ names, architecture = "llama", seed = 1, rank = 4, size = 0.3 }) {
  const tensors = Object.entries(names).flatMap(([name, [rows, cols]]) => [
    { name: `${name}.lora_a`, dims: [cols, rank] },
    { name: `${name}.lora_b`, dims: [rank, rows] },
  ]);
  const metadata = [
    ["general.type", STRING, "adapter"],
    ["general.architecture", STRING, architecture],
    ["adapter.type", STRING, "lora"],
    ["adapter.lora.alpha", F32, rank],
  ];
  const head = [Buffer.from("GGUF"), u32(3), u64(tensors.length), u64(metadata.length)];
  for (const [key, type, value] of metadata) {
    head.push(text(key), u32(type), type === STRING ? text(value) : f32(value));
  }
  let offset = 0;
  for (const { name, dims } of tensors) {
    // Type 0 is F32.
    head.push(text(name), u32(dims.length), ...dims.map(u64), u32(0), u64(offset));
    offset += padded(dims[0] * dims[1] * U32);
  }
  const header = Buffer.concat(head);
  const parts = [header, Buffer.alloc(padded(header.length) - header.length)];
  let state = seed;
  for (const { dims } of tensors) {
    const values = Buffer.alloc(padded(dims[0] * dims[1] * U32));
    for (let i = 0; i < dims[0] * dims[1]; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      values.writeFloatLE((state / 2 ** 31 - 1) * size, i * U32);
    }
    parts.push(values);
  }
  return Buffer.concat(parts);
}

const padded = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function f32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function text(value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}
