//! Counts the bytes of a wasm module's code by crate, by the names of its functions. Reads and removes the section with
//! these names.

const CUSTOM_SECTION = 0;
const IMPORT_SECTION = 2;
const CODE_SECTION = 10;
const FUNCTION_IMPORT = 0;
/** Subsection of the section "name". */
const FUNCTION_NAMES = 1;

/** Reads LEB128 numbers, bytes and strings one after the other. */
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  number() {
    let [value, factor, byte] = [0, 1, 0];
    do {
      byte = this.bytes[this.at++];
      value += (byte & 0x7f) * factor;
      factor *= 2 ** 7;
    } while (byte & 0x80);
    return value;
  }

  string() {
    const length = this.number();
    const text = new TextDecoder().decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

/** The sections of a module: `{ id, name, start, content, end }`, of which `name` is that of a custom section. */
function* sections(module) {
  const HEADER_BYTES = 8;
  const reader = new Reader(module, HEADER_BYTES);
  while (reader.at < module.length) {
    const start = reader.at;
    const id = reader.number();
    const length = reader.number();
    const end = reader.at + length;
    const name = id === CUSTOM_SECTION ? reader.string() : undefined;
    yield { id, name, start, content: reader.at, end };
    reader.at = end;
  }
}

/** The number of functions that a module imports. They have the first indices. */
function countImports(module, section) {
  const reader = new Reader(module, section.content);
  let functions = 0;
  for (let left = reader.number(); left > 0; left -= 1) {
    reader.string();
    reader.string();
    const kind = module[reader.at++];
    if (kind === FUNCTION_IMPORT) {
      functions += 1;
      reader.number();
      continue;
    }
    // A table, a memory or a global. wasm-bindgen imports at most a memory.
    const IMPORT_OF_MEMORY = 2;
    if (kind !== IMPORT_OF_MEMORY) throw new Error(`unexpected import of kind ${kind}`);
    const HAS_MAXIMUM = 1;
    const flags = reader.number();
    reader.number();
    if (flags & HAS_MAXIMUM) reader.number();
  }
  return functions;
}

/** The names of functions by index. */
function functionNames(module, section) {
  const reader = new Reader(module, section.content);
  const names = new Map();
  while (reader.at < section.end) {
    const kind = reader.number();
    const length = reader.number();
    const end = reader.at + length;
    if (kind === FUNCTION_NAMES) {
      for (let left = reader.number(); left > 0; left -= 1) {
        const index = reader.number();
        names.set(index, reader.string());
      }
    }
    reader.at = end;
  }
  return names;
}

/** The names that rustc writes for characters that symbols cannot have. */
const ESCAPES = { LT: "<", GT: ">", RF: "&", BP: "*", LP: "(", RP: ")", C: "," };

/** The path of a symbol in rustc's legacy mangling, and other names as they are. */
function demangled(name) {
  if (!name.startsWith("_ZN")) return name;
  let [path, at] = ["", "_ZN".length];
  for (;;) {
    const length = /^\d+/.exec(name.slice(at, at + 4))?.[0];
    if (length === undefined) break;
    at += length.length + Number(length);
    path += `::${name.slice(at - Number(length), at)}`;
  }
  const decoded = path.slice("::".length).replace(/\$(u[0-9a-f]+|[A-Z]+)\$/g, (_, character) => {
    const code = /^u([0-9a-f]+)$/.exec(character);
    return code ? String.fromCodePoint(Number.parseInt(code[1], 16)) : (ESCAPES[character] ?? "?");
  });
  return decoded.replaceAll("..", "::");
}

/** Much of their code is generic, and named for the type that it is made for. */
const STANDARD = ["core", "alloc", "std"];

/** The crate of a function: the first in its name that is not the standard library, because that is what it was made for. */
export function crateOf(name) {
  const paths = demangled(name).matchAll(/(?<![\w:])_?([a-z]\w*)::/g);
  const crates = [...paths].map(([, crate]) => crate);
  return crates.find((crate) => !STANDARD.includes(crate)) ?? crates[0] ?? "other";
}

/**
 * The code of a module by crate: `{ functions, code_bytes, crates: [{ crate, functions, bytes }] }`, the largest crate first.
 * @throws Error for a module without names
 */
export function codeByCrate(module) {
  let [imported, names, crates] = [0, undefined, new Map()];
  const all = [...sections(module)];
  for (const section of all) {
    if (section.id === IMPORT_SECTION) imported = countImports(module, section);
    if (section.name === "name") names = functionNames(module, section);
  }
  if (!names) throw new Error("the module has no names of functions");
  const code = all.find(({ id }) => id === CODE_SECTION);
  const reader = new Reader(module, code.content);
  const functions = reader.number();
  for (let index = imported; index < imported + functions; index += 1) {
    const start = reader.at;
    const length = reader.number();
    reader.at += length;
    const crate = crateOf(names.get(index) ?? "");
    const sum = crates.get(crate) ?? { crate, functions: 0, bytes: 0 };
    crates.set(crate, sum);
    sum.functions += 1;
    sum.bytes += reader.at - start;
  }
  const largestFirst = [...crates.values()].sort((a, b) => b.bytes - a.bytes);
  return { functions, code_bytes: code.end - code.content, crates: largestFirst };
}

/** A module without the names of its functions, which nothing needs to run it. */
export function withoutNames(module) {
  const kept = [module.subarray(0, 8)];
  for (const { name, start, end } of sections(module)) {
    if (name !== "name") kept.push(module.subarray(start, end));
  }
  return Buffer.concat(kept);
}
