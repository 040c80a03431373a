//! Constraints of answers: their fields of a request, and the errors of those that cannot be met.

import { isRefusal } from "./refusal.js";

/** The fields of a request that hold constraints. */
const FIELDS = /^(response_format|guided_regex)\b/;

/**
 * Fields of a request that make the answer fit a JSON schema or a regular expression.
 *
 * @throws DOMException named `NotSupportedError` if JSON cannot hold the schema
 */
export function constraintFields(constraint: object | undefined): Record<string, unknown> {
  if (constraint === undefined) return {};
  if (constraint instanceof RegExp) return { guided_regex: regexOf(constraint.source) };
  let schema: unknown;
  try {
    schema = JSON.parse(JSON.stringify(constraint));
  } catch (error) {
    throw notSupported((error as Error).message);
  }
  return { response_format: { type: "json_schema", json_schema: { name: "response", schema } } };
}

/** Classes of JavaScript, which have ASCII only, as sets of characters. */
const CLASSES: Readonly<Record<string, string>> = { d: "0-9", w: "A-Za-z0-9_" };

/**
 * The regular expression as the endpoint reads it: without the anchors around it, because the whole answer matches, and with
 * JavaScript's classes.
 */
function regexOf(source: string): string {
  let isInSet = false;
  const tokens = source.match(/\\.|./gs) ?? [];
  const translated = tokens.map((token, index) => {
    const isAnchor = token === "^" ? index === 0 : token === "$" && index === tokens.length - 1;
    if (isAnchor && !isInSet) return "";
    if (token === "[") isInSet = true;
    if (token === "]") isInSet = false;
    const name = token.length === 2 ? (token[1] as string) : "";
    const characters = CLASSES[name.toLowerCase()];
    if (characters === undefined) return token;
    const isNegated = name !== name.toLowerCase();
    if (isInSet) return isNegated ? token : characters;
    return `[${isNegated ? "^" : ""}${characters}]`;
  });
  return translated.join("");
}

/** The error of a request with a constraint, as the Prompt API has it. */
export function orNotSupported(error: unknown, constraint: object | undefined): unknown {
  const isOfConstraint =
    constraint !== undefined && isRefusal(error) && FIELDS.test(error.param ?? "");
  return isOfConstraint ? notSupported(error.message) : error;
}

const notSupported = (reason: string) =>
  new DOMException(`the responseConstraint cannot be met: ${reason}`, "NotSupportedError");
