//! The few error answers that JavaScript gives because the Rust side cannot: the engine is dead or cannot be
//! reached. They have the form of the endpoint's errors (specification 1.4, 1.5, 2.1, 22.4, 23.5), which depends on the URL of the request.

import type { HeaderList } from "./protocol.js";

/** The reason why the engine itself cannot answer; `code` is one of specification 2.2. */
export class EngineFailure extends Error {
  override readonly name = "EngineFailure";
  constructor(
    readonly code: string,
    message: string,
    /** The time after which a request may be tried again; present for `engine_unavailable` and `model_not_loaded`. */
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

/** An error with its HTTP status. */
export interface StatusError {
  status: number;
  code: string;
  message: string;
}

/**
 * The parts that every error has that answers a request to `url`, in the form of the routes there: headers besides those of CORS, those that
 * pages may read, and the body.
 */
export function errorParts(
  error: StatusError,
  url: string,
): { headers: HeaderList; exposed: string; body: string } {
  const id = requestId();
  const isAnthropic = isOfMessages(url);
  const ids = isAnthropic ? ["x-request-id", "request-id"] : ["x-request-id"];
  return {
    headers: [
      ["content-type", "application/json; charset=utf-8"],
      ["cache-control", "no-store"],
      ...ids.map((name): [string, string] => [name, id]),
    ],
    exposed: [...ids, "retry-after", "x-should-retry"].join(", "),
    body: JSON.stringify(isAnthropic ? anthropicObject(error, id) : bodyAt(url, error)),
  };
}

/** The whole answer, for a request to `url` whose head is not sent yet. */
export function failureAnswer(
  failure: EngineFailure,
  url: string,
): {
  status: number;
  headers: HeaderList;
  body: string;
} {
  const unavailable = failure.code === "engine_unavailable";
  const retryAfterS = failure.retryAfterS ?? (unavailable ? 1 : undefined);
  const { headers, exposed, body } = errorParts(withStatus(failure), url);
  headers.push(
    ["access-control-allow-origin", "*"],
    ["access-control-expose-headers", exposed],
    // An engine that cannot be reached may be back in a second; one that failed would fail again.
    retryAfterS === undefined ? ["x-should-retry", "false"] : ["retry-after", `${retryAfterS}`],
  );
  return { status: statusOf(failure), headers, body };
}

/** The same answer as a `Response`. */
export function failureResponse(failure: EngineFailure, url: string): Response {
  const { status, headers, body } = failureAnswer(failure, url);
  return new Response(body, { status, headers });
}

/** The last events of a stream from `url` that fails after its head (specification 10.7 and 22.4). */
export function failureEvents(failure: EngineFailure, url: string): string {
  const error = withStatus(failure);
  if (isOfMessages(url)) {
    return `event: error\ndata: ${JSON.stringify(anthropicObject(error, null))}\n\n`;
  }
  return `data: ${JSON.stringify(errorObject(error))}\n\ndata: [DONE]\n\n`;
}

/** Whether `url` is at or below the routes of Messages; `models/messages` is a model, and OpenAI's threads have messages, too. */
function isOfMessages(url: string): boolean {
  return /(?<!\/(?:models(?:\/.*)?|threads\/[^/]+))\/messages(?:\/|$)/.test(new URL(url).pathname);
}

/** Whether `url` is one of the routes that rerank; `models/rerank` is a model. */
function isOfRerank(url: string): boolean {
  return /(?<!\/models(?:\/.*)?)\/rerank(?:ing)?\/?$/.test(new URL(url).pathname);
}

function statusOf({ code }: EngineFailure): number {
  return code === "engine_unavailable" || code === "model_not_loaded" ? 503 : 500;
}

function withStatus(failure: EngineFailure): StatusError {
  return { status: statusOf(failure), code: failure.code, message: failure.message };
}

function errorObject({ status, message, code }: StatusError) {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return { error: { message, type, param: null, code } };
}

/** The body at `url`. Clients of Cohere read `message`, those of Jina and Voyage `detail`. */
function bodyAt(url: string, error: StatusError) {
  const body = errorObject(error);
  const { message } = error;
  return isOfRerank(url) ? { ...body, message, detail: message } : body;
}

/** The types of Anthropic's errors, of the statuses that are answered here. Others are `invalid_request_error`. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  403: "permission_error",
  413: "request_too_large",
  500: "api_error",
  503: "overloaded_error",
};

function anthropicObject({ status, message, code }: StatusError, request_id: string | null) {
  const type = ANTHROPIC_TYPES[status] ?? "invalid_request_error";
  return { type: "error", error: { message, type, param: null, code }, request_id };
}

/** `req_` and 24 characters of `[a-z0-9]`. */
function requestId(): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  let id = "req_";
  while (id.length < 28) {
    const [byte = 255] = crypto.getRandomValues(new Uint8Array(1));
    // 252 = 7 * 36: with the bytes from 252 on, the first letters would be more likely.
    if (byte < 252) id += alphabet[byte % 36];
  }
  return id;
}
