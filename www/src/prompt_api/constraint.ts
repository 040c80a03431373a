//! Constraints of answers: their fields of a request, and the errors of those that cannot be met.

import { InpageError } from "../api/inpage_error.js";

/** The fields of a request that hold constraints. */
const FIELDS = /^(response_format|guided_regex)\b/;

/**
 * Fields of a request that make the answer fit a JSON schema or a regular expression.
 *
 * @throws DOMException named `NotSupportedError` if JSON cannot hold the schema
 */
export function constraintFields(constraint: object | undefined): Record<string, unknown> {
  if (constraint === undefined) return {};
  if (constraint instanceof RegExp) return { guided_regex: withoutAnchors(constraint.source) };
  let schema: unknown;
  try {
    schema = JSON.parse(JSON.stringify(constraint));
  } catch (error) {
    throw notSupported((error as Error).message);
  }
  return { response_format: { type: "json_schema", json_schema: { name: "response", schema } } };
}

/** The whole answer matches anyway. A dollar sign behind an odd number of backslashes is a character. */
const withoutAnchors = (source: string) =>
  source.replace(/^\^/, "").replace(/(^|[^\\])((?:\\\\)*)\$$/, "$1$2");

/** The error of a request with a constraint, as the Prompt API has it. */
export function orNotSupported(error: unknown, constraint: object | undefined): unknown {
  const isOfConstraint =
    constraint !== undefined && error instanceof InpageError && FIELDS.test(error.param ?? "");
  return isOfConstraint ? notSupported(error.message) : error;
}

const notSupported = (reason: string) =>
  new DOMException(`the responseConstraint cannot be met: ${reason}`, "NotSupportedError");
