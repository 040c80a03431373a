//! Assertions for the cases. Every failure names the expected and the actual value. Runs in Node and in pages.

/** A property of the case does not hold. */
export class CheckError extends Error {
  name = "CheckError";
}

const MAX_SHOWN = 300;

/** A value in the form used in messages. */
export function show(value) {
  const text = value === undefined ? "undefined" : JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

export function fail(message) {
  throw new CheckError(message);
}

/** `what` names the expected property. */
export function ok(condition, what, seen) {
  if (!condition) fail(seen === undefined ? what : `${what}: seen ${show(seen)}`);
}

/** Equal as JSON, with members in any order. */
export function equal(seen, expected, what) {
  if (!isEqual(seen, expected)) fail(`${what}: expected ${show(expected)}, seen ${show(seen)}`);
}

function isEqual(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => name in b && isEqual(a[name], b[name]))
  );
}

/** |seen − expected| ≤ tolerance; both may be null. */
export function near(seen, expected, tolerance, what) {
  if (seen === null && expected === null) return;
  if (typeof seen !== "number" || !(Math.abs(seen - expected) <= tolerance)) {
    fail(`${what}: expected ${show(expected)} ± ${tolerance}, seen ${show(seen)}`);
  }
}

/** Two lists of numbers (or nulls), entry by entry. */
export function allNear(seen, expected, tolerance, what) {
  equal(seen.length, expected.length, `${what}, length`);
  seen.forEach((value, i) => {
    near(value, expected[i], tolerance, `${what}[${i}]`);
  });
}

export function matches(seen, pattern, what) {
  if (typeof seen !== "string" || !pattern.test(seen)) {
    fail(`${what}: expected ${pattern}, seen ${show(seen)}`);
  }
}

/** Code points. */
export const cp = (text) => [...text];

const TYPES = {
  object: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  array: Array.isArray,
  string: (value) => typeof value === "string",
  integer: Number.isInteger,
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

const RULES = {
  type: (value, type) => TYPES[type](value),
  enum: (value, list) => list.some((item) => isEqual(item, value)),
  minimum: (value, least) => typeof value !== "number" || value >= least,
  maximum: (value, most) => typeof value !== "number" || value <= most,
  maxLength: (value, most) => typeof value !== "string" || cp(value).length <= most,
  required: (value, names) => !TYPES.object(value) || names.every((name) => name in value),
  properties: (value, schemas) =>
    !TYPES.object(value) ||
    Object.entries(schemas).every(
      ([name, schema]) => !(name in value) || fits(value[name], schema),
    ),
  additionalProperties: (value, allowed, { properties }) =>
    allowed || !TYPES.object(value) || Object.keys(value).every((name) => name in properties),
};

function fits(value, schema) {
  return Object.entries(schema).every(([keyword, argument]) => {
    const rule = RULES[keyword] ?? fail(`the checker does not support the keyword ${keyword}`);
    return rule(value, argument, schema);
  });
}

/** Whether `value` satisfies a schema made of the keywords that the cases use. */
export function valid(value, schema, what) {
  if (!fits(value, schema)) fail(`${what}: ${show(value)} does not satisfy ${show(schema)}`);
}
