//! The failures of requests for a file: which of them end a download, and which are retried.

/** The server has no such file. */
export class NoSuchFile extends TypeError {}

/** The answer is a web page, such as the start page that a server sends for every unknown path. */
export class WebPage extends NoSuchFile {}

/** The file has changed since its first bytes were read. */
export class ChangedFile extends TypeError {}

/** The server does not send parts of the file, or its parts cannot be trusted. */
export class NoRanges extends TypeError {}

/** The request may succeed if it is sent again. */
export class TransientFailure extends TypeError {
  /** True if no answer came: the server cannot be reached, or the browser forbids the request. */
  readonly isUnreached: boolean;
  /** The time that the server asks to wait. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    {
      isUnreached = false,
      retryAfterMs,
    }: { isUnreached?: boolean; retryAfterMs?: number | undefined } = {},
  ) {
    super(message);
    this.isUnreached = isUnreached;
    this.retryAfterMs = retryAfterMs;
  }
}

/** The bytes of the answer arrive too slowly. */
export class SlowAnswer extends TransientFailure {}

/**
 * A partial answer that is not the requested range, or does not state its range. The file must be requested
 * as a whole.
 */
export class UntrustedRange extends TransientFailure {}

/** The likely reason why a request got no answer, as far as the page can know. */
export function likelyCause(url: string): string {
  if (globalThis.navigator?.onLine === false) return "The browser is offline.";
  const page = globalThis.location?.origin;
  const target = new URL(url);
  if (
    page?.startsWith("https:") &&
    target.protocol === "http:" &&
    target.hostname !== "localhost"
  ) {
    return "A page with https cannot load from http.";
  }
  if (page === undefined || page === target.origin) return "Is the server running?";
  return (
    `Is ${target.origin} reachable, does it allow requests from ${page} (CORS: Access-Control-Allow-Origin), and does the ` +
    "page's Content-Security-Policy (connect-src) allow it?"
  );
}

/** True if the storage failed, not the network. */
export function isStorageFailure(error: unknown): error is DOMException {
  return error instanceof DOMException && STORAGE_FAILURES.includes(error.name);
}

const STORAGE_FAILURES = [
  "QuotaExceededError",
  "NoModificationAllowedError",
  "InvalidStateError",
  "NotFoundError",
  "NotReadableError",
  "UnknownError",
];
