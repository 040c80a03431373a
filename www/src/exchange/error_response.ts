//! The few error answers that JavaScript gives because the Rust side cannot: the engine is dead or cannot be
//! reached. They have the form of every error of the endpoint (specification 1.4, 1.5, 2.1).

import type { HeaderList } from "./protocol.js";

/** Why the engine itself cannot answer; `code` is one of specification 2.2. */
export class EngineFailure extends Error {
  override readonly name = "EngineFailure";
  constructor(
    readonly code: string,
    message: string,
    /** When a request may be tried again; of `engine_unavailable` and `model_not_loaded`. */
    readonly retryAfterS?: number,
  ) {
    super(message);
  }
}

/** `reason` as an [`EngineFailure`]; anything unknown is an `internal_error`. */
export function toEngineFailure(reason: unknown): EngineFailure {
  if (reason instanceof EngineFailure) return reason;
  if (reason instanceof InvalidOptions) return new EngineFailure("invalid_option", reason.message);
  return new EngineFailure("internal_error", messageOf(reason));
}

/** The options of the engine are wrong: starting it again would fail again. */
export class InvalidOptions extends Error {
  override readonly name = "InvalidOptions";
}

/** The message of anything thrown; never empty. */
export function messageOf(reason: unknown): string {
  const text = reason instanceof Error ? reason.message : String(reason);
  return text || "unknown error";
}

/** The `code` of an error from the Rust side; other errors (a failed fetch, a broken file) have none. */
export function codeOf(error: unknown, otherwise: string): string {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : otherwise;
}

/** The whole answer, for a request whose head is not sent yet. */
export function failureAnswer(failure: EngineFailure): {
  status: number;
  headers: HeaderList;
  body: string;
} {
  const unavailable = failure.code === "engine_unavailable";
  const retryAfterS = failure.retryAfterS ?? (unavailable ? 1 : undefined);
  const headers: HeaderList = [
    ["content-type", "application/json; charset=utf-8"],
    ["cache-control", "no-store"],
    ["x-request-id", requestId()],
    ["access-control-allow-origin", "*"],
    ["access-control-expose-headers", "x-request-id, retry-after, x-should-retry"],
    // An engine that cannot be reached may be back in a second; one that failed would fail again.
    retryAfterS === undefined ? ["x-should-retry", "false"] : ["retry-after", `${retryAfterS}`],
  ];
  const status = unavailable || failure.code === "model_not_loaded" ? 503 : 500;
  return { status, headers, body: JSON.stringify(errorObject(failure)) };
}

/** The same answer as a `Response`. */
export function failureResponse(failure: EngineFailure): Response {
  const { status, headers, body } = failureAnswer(failure);
  return new Response(body, { status, headers });
}

/** The last events of a stream that fails after its head (specification 10.7). */
export function failureEvents(failure: EngineFailure): string {
  return `data: ${JSON.stringify(errorObject(failure))}\n\ndata: [DONE]\n\n`;
}

function errorObject(failure: EngineFailure) {
  return {
    error: { message: failure.message, type: "server_error", param: null, code: failure.code },
  };
}

/** `req_` and 24 characters of `[a-z0-9]`. */
export function requestId(): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  let id = "req_";
  while (id.length < 28) {
    const [byte = 255] = crypto.getRandomValues(new Uint8Array(1));
    // 252 = 7 * 36: with the bytes from 252 on, the first letters would be more likely.
    if (byte < 252) id += alphabet[byte % 36];
  }
  return id;
}
