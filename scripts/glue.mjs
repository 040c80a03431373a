//! Changes the glue code that wasm-bindgen writes for a module, so that the module's memory may be shared. wasm-bindgen
//! itself does that only for modules of several threads.

/** `[from, to, times]`: text of the glue, what replaces it, and how often it occurs at least. */
const CHANGES = [
  // Shared memory that grows does not detach its views.
  [
    /(cached\w+ArrayMemory0)\.byteLength === 0/g,
    (_, view) => `${view}.buffer !== wasm.memory.buffer`,
  ],
  // Decoders, encoders and the random generator of browsers refuse shared memory.
  [
    /cachedTextDecoder\.decode\(bytes\)/g,
    () => "cachedTextDecoder.decode(isShared(bytes) ? bytes.slice() : bytes)",
  ],
  [
    /cachedTextEncoder\.encodeInto\(arg, view\)/g,
    () => "(isShared(view) ? encodeIntoShared : encodeInto)(arg, view)",
  ],
  [
    /globalThis\.crypto\.getRandomValues\((getArrayU8FromWasm0\(arg0, arg1\))\)/g,
    (_, view) => `fillRandomly(${view})`,
  ],
];

const ADDED = `
function isShared(view) {
    return !(view.buffer instanceof ArrayBuffer);
}

function encodeInto(text, view) {
    return cachedTextEncoder.encodeInto(text, view);
}

function encodeIntoShared(text, view) {
    const bytes = cachedTextEncoder.encode(text);
    view.set(bytes);
    return { read: text.length, written: bytes.length };
}

function fillRandomly(view) {
    const values = isShared(view) ? new Uint8Array(view.length) : view;
    globalThis.crypto.getRandomValues(values);
    if (values !== view) view.set(values);
}
`;

/**
 * The glue code, changed.
 *
 * @throws Error if wasm-bindgen has written other code than expected
 */
export function withSharedMemory(glue) {
  let changed = glue;
  for (const [from, to] of CHANGES) {
    if (!from.test(changed)) throw new Error(`the glue of wasm-bindgen has no ${from}`);
    changed = changed.replace(from, to);
  }
  const unknown = /\.byteLength === 0|\.decode\(bytes\)/.exec(changed);
  if (unknown) throw new Error(`the glue of wasm-bindgen has an unknown ${unknown[0]}`);
  return changed + ADDED;
}
