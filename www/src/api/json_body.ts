//! The JSON of a request body, from JavaScript values. Unlike `JSON.stringify` it never changes or drops a
//! value silently: a BigInt keeps all its digits, a typed array is an array, and a value that JSON cannot
//! represent is an error that names its place.

import { InpageError } from "./inpage_error.js";

/** Keys and indices from the body to a value. */
type Path = readonly (string | number)[];

/**
 * @throws InpageError `invalid_type` if the body contains itself or is `undefined`, and with the field's name if a value in it has no
 * JSON form
 */
export function encodeBody(body: unknown): string {
  const json = encode(body, [], []);
  if (json === undefined)
    throw InpageError.local("invalid_type", "the request body has no JSON form");
  return json;
}

/** `undefined` for `undefined` only. `ancestors` are the objects that contain `value`. */
function encode(given: unknown, path: Path, ancestors: readonly object[]): string | undefined {
  const value = plain(given, path);
  switch (typeof value) {
    case "undefined":
      return undefined;
    case "bigint":
      return value.toString();
    case "number":
      if (!Number.isFinite(value)) throw notJson(path, String(value));
      return String(value);
    case "function":
    case "symbol":
      throw notJson(path, `a ${typeof value}`);
    case "object":
      if (value === null) return "null";
      if (ancestors.includes(value))
        throw InpageError.local("invalid_type", "the request body contains itself");
      return isArray(value)
        ? encodeArray(value, path, [...ancestors, value])
        : encodeObject(value, path, [...ancestors, value]);
    default:
      return JSON.stringify(value);
  }
}

function encodeArray(array: ArrayLike<unknown>, path: Path, ancestors: readonly object[]): string {
  const items = Array.from(array, (item, index) => {
    const json = encode(item, [...path, index], ancestors);
    if (json === undefined) throw notJson([...path, index], "undefined");
    return json;
  });
  return `[${items.join(",")}]`;
}

/** Members that are `undefined` are left out. */
function encodeObject(object: object, path: Path, ancestors: readonly object[]): string {
  const members = Object.entries(object);
  const [, type] = /^\[object (.*)\]$/.exec(Object.prototype.toString.call(object)) ?? [];
  // The content of a Map, a Promise or an ArrayBuffer is in no member, so it would be lost.
  if (members.length === 0 && type !== "Object") throw notJson(path, `a value of type ${type}`);
  const encoded = members.flatMap(([name, member]) => {
    const json = encode(member, [...path, name], ancestors);
    return json === undefined ? [] : [`${JSON.stringify(name)}:${json}`];
  });
  return `{${encoded.join(",")}}`;
}

/** The value that `value` stands for: the result of its `toJSON`, or the primitive in its wrapper object. */
function plain(value: unknown, path: Path): unknown {
  if (typeof value !== "object" || value === null) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return value.toJSON(String(path.at(-1) ?? ""));
  }
  const isWrapper =
    value instanceof Number ||
    value instanceof String ||
    value instanceof Boolean ||
    value instanceof BigInt;
  return isWrapper ? value.valueOf() : value;
}

/** Token ids often come as a `Uint32Array`. */
function isArray(value: object): value is ArrayLike<unknown> & object {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

/** The endpoint's own answer to a value of a wrong type; `param` is the field, the message has the path. */
function notJson(path: Path, value: string): InpageError {
  const [field] = path;
  return new InpageError(400, {
    message: `${placeOf(path)} must be a JSON value, not ${value}`,
    type: "invalid_request_error",
    param: field === undefined ? null : String(field),
    code: "invalid_type",
  });
}

/** `prompt[0][2]`, `logit_bias["5"]`, `response_format.schema`. */
function placeOf([field, ...rest]: Path): string {
  if (field === undefined) return "the request body";
  const steps = rest.map((key) =>
    typeof key === "string" && /^[a-z_$][\w$]*$/i.test(key)
      ? `.${key}`
      : `[${JSON.stringify(key)}]`,
  );
  return [String(field), ...steps].join("");
}
