//! The field `model` of a request body: what it says, and the same body with another name in it. All other bytes stay as they
//! are, because `JSON.parse` would change numbers that JavaScript cannot represent.

/** The model that a body names. `isObject` is false for a body that the endpoint refuses whatever the model is. */
export interface ModelField {
  isObject: boolean;
  /** `undefined` if the field is missing, null or empty, as for the endpoint; another value than a string counts as `isObject: false`. */
  model: string | undefined;
}

const NOT_READABLE: ModelField = { isObject: false, model: undefined };

export function modelFieldOf(body: Uint8Array): ModelField {
  let value: unknown;
  try {
    value = JSON.parse(textOf(body));
  } catch {
    return NOT_READABLE;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return NOT_READABLE;
  const { model } = value as { model?: unknown };
  if (model === undefined || model === null || model === "") {
    return { isObject: true, model: undefined };
  }
  return typeof model === "string" ? { isObject: true, model } : NOT_READABLE;
}

/** `body`, which `modelFieldOf` could read, with `name` in place of the model's name. */
export function withModel(body: Uint8Array, name: string): Uint8Array {
  const text = textOf(body);
  let written = "";
  let copied = 0;
  let depth = 0;
  /** The string before the current place, if nothing but space is between. */
  let last: { value: string; isKey: boolean } | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') {
      const end = endOfString(text, at);
      const isModel = depth === 1 && last?.isKey === true && last.value === '"model"';
      if (isModel) {
        written += text.slice(copied, at) + JSON.stringify(name);
        copied = end;
      }
      last = { value: text.slice(at, end), isKey: false };
      at = end - 1;
    } else if (character === ":") {
      if (last) last = { value: JSON.stringify(JSON.parse(last.value)), isKey: true };
    } else if (!/\s/.test(character)) {
      last = undefined;
      if (character === "{" || character === "[") depth += 1;
      if (character === "}" || character === "]") depth -= 1;
    }
  }
  return new TextEncoder().encode(written + text.slice(copied));
}

/** The place after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/** @throws TypeError if the body is no UTF-8 */
function textOf(body: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
}
