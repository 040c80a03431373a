//! The error class of the public API, around the error object of specification 2.1.

import { codeOf, messageOf } from "../exchange/error_response.js";

/** The error object of the endpoint. */
export interface ErrorObject {
  message: string;
  type: string;
  param: string | null;
  code: string | null;
}

/** An error answer of the endpoint, or a failure to start the engine. */
export class InpageError extends Error {
  override readonly name = "InpageError";
  /** The HTTP status; undefined for an error inside a stream or before any request. */
  readonly status: number | undefined;
  /** The error object as the endpoint sent it. */
  readonly error: ErrorObject;
  readonly code: string | null;
  readonly param: string | null;
  readonly type: string;

  constructor(status: number | undefined, error: ErrorObject) {
    super(error.message);
    this.status = status;
    this.error = error;
    this.code = error.code;
    this.param = error.param;
    this.type = error.type;
  }

  /** The error for the status and body of an error answer. */
  static fromAnswer(status: number, body: string): InpageError {
    try {
      const { error } = JSON.parse(body);
      if (typeof error?.message === "string") return completed(status, error);
    } catch {
      // Not JSON: handled below.
    }
    return completed(status, { message: `status ${status} without an error object` });
  }

  /** The error for a parsed error object. */
  static fromErrorObject(status: number | undefined, error: Partial<ErrorObject>): InpageError {
    return completed(status, error);
  }

  /** The error for a failure before any request: the engine could not start, the page is not controlled, ... */
  static local(code: string, message: string): InpageError {
    return completed(undefined, { message, code });
  }
}

/**
 * An error of which some members may be missing. Not a part of the class, because the build renames a class whose own text names it, and
 * `error.constructor.name` is for users to read.
 */
function completed(status: number | undefined, error: Partial<ErrorObject>): InpageError {
  const { message = "unknown error", type = "server_error", param = null, code = null } = error;
  return new InpageError(status, { message, type, param, code });
}

/**
 * The error that a call of the package throws for `reason`: the reason of an abort as it is, anything else as an `InpageError`. A `TypeError`
 * means an argument that cannot be used, unless the caller says otherwise.
 */
export function asInpageError(reason: unknown, codeOfTypeError = "invalid_option"): unknown {
  if (reason instanceof InpageError || reason instanceof DOMException) return reason;
  const code = codeOf(reason, reason instanceof TypeError ? codeOfTypeError : "internal_error");
  const error = InpageError.local(code, messageOf(reason));
  return Object.defineProperty(error, "cause", { value: reason });
}

/** Runs a call of the package, which throws and rejects with what `asInpageError` gives. */
export async function throwingInpageErrors<Value>(call: () => Promise<Value>): Promise<Value> {
  try {
    return await call();
  } catch (reason) {
    throw asInpageError(reason);
  }
}
