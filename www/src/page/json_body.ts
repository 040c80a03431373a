//! JSON of a request body from JavaScript values, for the Rust side to judge. Differs from
//! `JSON.stringify` in two points: a BigInt keeps all its digits, and a number that JSON cannot
//! say does not turn into `null`, which the endpoint would take for "absent".

/**
 * What stands for NaN and the infinities. No field of the endpoint takes a boolean in an array, nor
 * has elements or map values that are arrays of booleans: an `invalid_type` wherever it stands.
 */
const NOT_A_JSON_NUMBER = "[false]";

/** @throws TypeError for a cyclic value or a top level that JSON has no form for */
export function encodeBody(body: unknown): string {
  const json = encode(body, "", []);
  if (json === undefined) throw new TypeError("the request body has no JSON form");
  return json;
}

function encode(value: unknown, key: string, ancestors: object[]): string | undefined {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : NOT_A_JSON_NUMBER;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return encode(value.toJSON(key), key, ancestors);
  }
  if (value instanceof Number || value instanceof String || value instanceof Boolean) {
    return encode(value.valueOf(), key, ancestors);
  }
  if (ancestors.includes(value)) throw new TypeError("the request body contains itself");

  const inner = [...ancestors, value];
  if (Array.isArray(value) || isNumberArray(value)) {
    const items = Array.from(value as ArrayLike<unknown>, (item, index) =>
      encode(item, String(index), inner),
    );
    return `[${items.map((item) => item ?? "null").join(",")}]`;
  }
  const members = Object.entries(value).flatMap(([name, member]) => {
    const json = encode(member, name, inner);
    return json === undefined ? [] : [`${JSON.stringify(name)}:${json}`];
  });
  return `{${members.join(",")}}`;
}

/** Token ids often come as a `Uint32Array`. */
function isNumberArray(value: object): boolean {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}
