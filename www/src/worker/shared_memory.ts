//! Lets a wasm module work in shared memory, so that threads can compute in it. Only the declaration of its memory
//! changes: the main module runs on one thread as before.

const MAGIC_BYTES = 8;
const IMPORT_SECTION = 2;
const MEMORY_SECTION = 5;
const CODE_SECTION = 10;
const IS_SHARED_WITH_MAXIMUM = 3;
/** 4 GiB, the most that 32-bit addresses reach. */
const MAXIMUM_PAGES = 1 << 16;

/** Kinds of imports. */
const [FUNCTION, TABLE, MEMORY, GLOBAL] = [0, 1, 2, 3];

/** The module with its memory, imported or its own, declared as shared; `undefined` if it has none. */
export function withSharedMemory(
  module: Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> | undefined {
  let at = MAGIC_BYTES;
  while (at < module.length && module[at] !== CODE_SECTION) {
    const id = module[at] ?? 0;
    const [size, begin] = readU32(module, at + 1);
    let limitsAt: number | undefined;
    if (id === IMPORT_SECTION) limitsAt = importedLimits(module, begin);
    // After the number of memories, which is one.
    if (id === MEMORY_SECTION) limitsAt = begin + 1;
    if (limitsAt !== undefined) {
      const [initialPages, initialEnd] = readU32(module, limitsAt + 1);
      const hasMaximum = ((module[limitsAt] ?? 0) & 1) === 1;
      const limitsEnd = hasMaximum ? readU32(module, initialEnd)[1] : initialEnd;
      const limits = [IS_SHARED_WITH_MAXIMUM, ...leb(initialPages), ...leb(MAXIMUM_PAGES)];
      return concatenated([
        module.subarray(0, at),
        Uint8Array.of(id, ...leb(size - (limitsEnd - limitsAt) + limits.length)),
        module.subarray(begin, limitsAt),
        Uint8Array.from(limits),
        module.subarray(limitsEnd),
      ]);
    }
    at = begin + size;
  }
  return undefined;
}

/** The place of the limits of an imported memory. */
function importedLimits(module: Uint8Array, begin: number): number | undefined {
  let [count, at] = readU32(module, begin);
  for (; count > 0; count--) {
    // The names of the module and of the import.
    for (let name = 0; name < 2; name++) {
      const [bytes, from] = readU32(module, at);
      at = from + bytes;
    }
    const kind = module[at++];
    if (kind === MEMORY) return at;
    if (kind === FUNCTION) at = readU32(module, at)[1];
    else if (kind === GLOBAL) at += 2;
    else if (kind === TABLE) {
      const [, initialEnd] = readU32(module, at + 2);
      at = ((module[at + 1] ?? 0) & 1) === 1 ? readU32(module, initialEnd)[1] : initialEnd;
    } else return undefined;
  }
  return undefined;
}

function concatenated(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** An LEB128 number and the index behind it. */
function readU32(bytes: Uint8Array, from: number): [value: number, end: number] {
  let [value, at] = [0, from];
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++] ?? 0;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
  }
}

function leb(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...leb(value >>> 7)];
}
