//! Converts test models to other containers: a GGUF file to parts as gguf-split writes them, a safetensors file to
//! shards.

/** Bytes of a GGUF value by its type; strings (8) and arrays (9) are longer. */
const SCALAR_BYTES = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };
const ALIGNMENT_BYTES = 32;

/** Reads a GGUF header in order. */
class Reader {
  at = 8;
  constructor(bytes) {
    this.bytes = bytes;
  }
  u32() {
    this.at += 4;
    return this.bytes.readUInt32LE(this.at - 4);
  }
  u64() {
    this.at += 8;
    return Number(this.bytes.readBigUInt64LE(this.at - 8));
  }
  skipText() {
    const length = this.u64();
    this.at += length;
  }
  skipValue(type) {
    if (type === 8) {
      this.skipText();
    } else if (type === 9) {
      const [of, count] = [this.u32(), this.u64()];
      for (let i = 0; i < count; i++) this.skipValue(of);
    } else {
      this.at += SCALAR_BYTES[type];
    }
  }
}

const u32 = (value) => Buffer.from(new Uint32Array([value]).buffer);
const u64 = (value) => Buffer.from(new BigUint64Array([BigInt(value)]).buffer);
const text = (value) => Buffer.concat([u64(value.length), Buffer.from(value)]);
const padding = (length) => Buffer.alloc(-length & (ALIGNMENT_BYTES - 1));

/** The parts of a GGUF file, by name. Tensors keep their order. */
export function splitGguf(stem, bytes, count) {
  const reader = new Reader(bytes);
  const [tensorCount, keyCount] = [reader.u64(), reader.u64()];
  const keysAt = reader.at;
  for (let i = 0; i < keyCount; i++) {
    reader.skipText();
    reader.skipValue(reader.u32());
  }
  const keys = bytes.subarray(keysAt, reader.at);
  const tensors = Array.from({ length: tensorCount }, () => {
    const start = reader.at;
    reader.skipText();
    const dimensions = reader.u32();
    reader.at += 8 * dimensions + 4;
    return { info: bytes.subarray(start, reader.at), offset: reader.u64() };
  });
  const dataAt = reader.at + padding(reader.at).length;
  // Each tensor extends to the next one or to the end of the file.
  const ends = [...tensors.slice(1).map(({ offset }) => offset), bytes.length - dataAt];
  const parts = {};
  for (let part = 0; part < count; part++) {
    const said = [
      ["split.no", part],
      ["split.count", count],
      ["split.tensors.count", tensorCount],
    ].map(([key, value]) => Buffer.concat([text(key), u32(4), u32(value)]));
    const own = tensors.flatMap((tensor, i) =>
      Math.floor((i * count) / tensorCount) === part ? [{ ...tensor, end: ends[i] }] : [],
    );
    const start = own[0].offset;
    const header = Buffer.concat([
      bytes.subarray(0, 8),
      u64(own.length),
      u64(said.length + (part === 0 ? keyCount : 0)),
      ...said,
      ...(part === 0 ? [keys] : []),
      ...own.flatMap(({ info, offset }) => [info, u64(offset - start)]),
    ]);
    const data = bytes.subarray(dataAt + start, dataAt + own.at(-1).end);
    const number = (value) => String(value).padStart(5, "0");
    parts[`${stem}-${number(part + 1)}-of-${number(count)}.gguf`] = Buffer.concat([
      header,
      padding(header.length),
      data,
      padding(data.length),
    ]);
  }
  return parts;
}

/** A safetensors file as an index and shards, by name; `extraBytes` are appended to each shard. */
export function shardSafetensors(bytes, count, extraBytes = 0) {
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const { __metadata__, ...tensors } = JSON.parse(bytes.subarray(8, 8 + headerBytes));
  const named = Object.entries(tensors);
  const files = {};
  const weight_map = {};
  for (let shard = 0; shard < count; shard++) {
    const file = `part-${shard}.safetensors`;
    const [entries, data] = [{}, []];
    let length = 0;
    for (const [i, [name, { data_offsets, ...entry }]] of named.entries()) {
      if (i % count !== shard) continue;
      const [start, end] = data_offsets.map((offset) => 8 + headerBytes + offset);
      entries[name] = { ...entry, data_offsets: [length, length + end - start] };
      data.push(bytes.subarray(start, end));
      length += end - start;
      weight_map[name] = file;
    }
    const header = JSON.stringify(entries);
    files[file] = Buffer.concat([text(header), ...data, Buffer.alloc(extraBytes)]);
  }
  files["model.safetensors.index.json"] = Buffer.from(JSON.stringify({ metadata: {}, weight_map }));
  return files;
}
