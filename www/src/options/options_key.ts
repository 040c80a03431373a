//! A string that is equal for sets of engine options that mean the same engine.

import type { EngineOptions } from "./engine_options.js";

/** The numbers that name objects without a string of their own (functions, files) in a key. */
const names = new WeakMap<object, number>();
let named = 0;

/**
 * Equal for options that mean the same engine in this page: plain objects, arrays, URLs and `Headers` count by what they
 * contain, functions and files by identity. How a caller waits (`signal`, `background`, `onProgress`) does not count.
 */
export function optionsKey(options: EngineOptions): string {
  const { signal: _signal, background: _background, onProgress: _onProgress, ...rest } = options;
  return keyOf(rest, []);
}

/** `ancestors` are the objects that contain `value`. */
function keyOf(value: unknown, ancestors: readonly unknown[]): string {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "function") return nameOf(value);
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  if (value instanceof URL) return JSON.stringify(value.href);
  if (ancestors.includes(value)) return nameOf(value);
  const inside = [...ancestors, value];
  if (Array.isArray(value)) return `[${value.map((item) => keyOf(item, inside)).join(",")}]`;
  if (value instanceof Headers) return `Headers${keyOf([...value], inside)}`;
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) return nameOf(value);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  members.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${keyOf(member, inside)}`)}}`;
}

function nameOf(value: object): string {
  const name = names.get(value) ?? ++named;
  names.set(value, name);
  return `#${name}`;
}
