//! One HTTP request for a file or a part of it. The answer is checked against the request, so that no caller has to trust
//! a server. Nothing is retried or cached here.
//!
//! No answer is trusted, no stored byte is trusted. This file compares each answer with what was asked; one that does
//! not prove what it is leads to a request for the whole file. `transfer.ts` repeats what may pass and knows no
//! storage. `intake.ts` hashes chunks of 4 MiB as they arrive; bytes that come a second time, because a server cannot
//! resume, are compared with those hashes, so that two versions are never joined, validators or not. `cache_layout.ts`
//! says what lies where: versions of a file side by side, the current one being the newest that is complete, so that
//! one small write replaces a version and nothing is renamed. `verified.ts` compares each chunk with its hash
//! when it is first read.

import { NoSuchFile, TransientFailure, UntrustedRange, WebPage } from "../store/failure.js";
import type { FileVersion } from "../store/version.js";

export { NoSuchFile };

/** A `fetch` for a model's files; the app may have configured headers and credentials. */
export type FetchFile = (url: string, init: RequestInit) => Promise<Response>;

export type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/** An answer with bytes of the file. */
export interface Answer {
  version: FileVersion;
  /** Offset of the first byte of `body` in the file. */
  startBytes: number;
  /** Offset behind the last byte of `body`; undefined if the server does not say it. */
  endBytes: number | undefined;
  /** True if the server sent the requested range. */
  isRange: boolean;
  body: Body;
}

/** A part of a file. */
export interface Range {
  startBytes: number;
  /** Undefined: to the end of the file. */
  endBytes: number | undefined;
}

export interface Question {
  url: string;
  fetchFile: FetchFile;
  /** Undefined: the whole file, without a `Range` header. */
  range: Range | undefined;
  /** A server whose file has another validator sends the whole file. */
  ifRange?: string | undefined;
  signal: AbortSignal;
}

/**
 * Requests a file. A server that does not support ranges answers with the whole file: see `startBytes`.
 *
 * @throws NoSuchFile, WebPage, TransientFailure; TypeError for all other refusals. All name the URL.
 */
export async function ask(question: Question): Promise<Answer> {
  const { url, range, ifRange } = question;
  // With a Range header, browsers ask for bytes that are not compressed. So it is sent for the whole file, too.
  const headers = new Headers();
  if (range !== undefined) headers.set("range", rangeHeader(range));
  if (ifRange !== undefined) headers.set("if-range", ifRange);
  const response = await request(question, { method: "GET", headers });
  try {
    const body = response.body as Body | null;
    if (body === null) throw new TransientFailure(`${url} answered without a body`);
    const answer =
      range && response.status === 206
        ? partial(url, range, response)
        : whole(url, range, response);
    return { ...answer, body };
  } catch (error) {
    await discard(response);
    throw error;
  }
}

/**
 * The version of the file on the server, without its bytes.
 *
 * @throws as `ask`
 */
export async function askVersion(
  url: string,
  fetchFile: FetchFile,
  signal: AbortSignal,
): Promise<FileVersion> {
  // The range, which `ask` sends too, makes size and ETag those of the bytes that are not compressed.
  const headers = { range: "bytes=0-" };
  const response = await send({ url, fetchFile, signal }, { method: "HEAD", headers });
  // Signed URLs are often valid for GET only.
  if ([400, 403, 405, 416, 501].includes(response.status)) {
    const range = { startBytes: 0, endBytes: 1 };
    const { version, body } = await ask({ url, fetchFile, range, signal });
    await body.cancel();
    return version;
  }
  await refuse(url, response);
  if (response.status !== 206)
    return { ...validators(response), sizeBytes: contentLength(response) };
  // The range is the whole file; a server of another origin may hide Content-Range.
  const sizeBytes = contentRange(response)?.sizeBytes ?? contentLength(response);
  return { ...validators(response), sizeBytes };
}

/**
 * A small file as a whole; works without any size from the server.
 *
 * @throws as `ask`
 */
export async function fetchWhole(
  url: string,
  fetchFile: FetchFile,
  signal: AbortSignal,
): Promise<Blob> {
  const response = await request({ url, fetchFile, range: undefined, signal }, { method: "GET" });
  whole(url, undefined, response);
  return response.blob();
}

export const rangeHeader = ({ startBytes, endBytes }: Range) =>
  `bytes=${startBytes}-${endBytes === undefined ? "" : endBytes - 1}`;

/** The validator that `If-Range` may contain: a strong ETag or a date (RFC 9110 section 13.1.5). */
export function rangeValidator({ etag, lastModified }: FileVersion): string | undefined {
  return (etag?.startsWith("W/") ? lastModified : (etag ?? lastModified)) ?? undefined;
}

/** True if the file starts as a web page does. */
export function looksLikeWebPage(start: Uint8Array): boolean {
  const text = new TextDecoder().decode(start.subarray(0, 64));
  return /^\s*<(!doctype\s+html|html[\s>])/i.test(text);
}

export function webPage(url: string): WebPage {
  return new WebPage(
    `${url} answered with a web page, not with a model file: is the URL right, and does it need a login?`,
  );
}

async function request(question: Question, init: RequestInit): Promise<Response> {
  const response = await send(question, init);
  await refuse(question.url, response);
  return response;
}

async function send(
  { url, fetchFile, signal }: Pick<Question, "url" | "fetchFile" | "signal">,
  init: RequestInit,
): Promise<Response> {
  try {
    // `no-store` keeps gigabytes out of the HTTP cache.
    return await fetchFile(url, { ...init, signal, cache: "no-store" });
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof TypeError)) throw error;
    // Node reports the cause; browsers do not.
    const why = error.cause instanceof Error ? `: ${error.cause.message}` : "";
    const message = `no answer from ${url} (${error.message}${why})`;
    throw new TransientFailure(message, { isUnreached: true });
  }
}

/** Throws for an answer without the file, whose body it cancels. */
async function refuse(url: string, response: Response): Promise<void> {
  const { status, statusText, headers } = response;
  const type = headers.get("content-type") ?? "";
  const isPage = /^\s*(text\/html|application\/xhtml\+xml)/i.test(type);
  if ((status === 200 || status === 206) && !isPage) return;
  await discard(response);
  if (response.ok && isPage) throw webPage(url);
  const message = `${url} answered ${status} ${statusText}`.trim();
  if (status === 404 || status === 410) throw new NoSuchFile(message);
  if (status === 416) throw new UntrustedRange(message);
  const isTransient = [408, 425, 429].includes(status) || status >= 500;
  if (!isTransient) throw new TypeError(message);
  throw new TransientFailure(message, { retryAfterMs: retryAfter(headers.get("retry-after")) });
}

/** Frees the connection. */
async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {});
}

/** A 206 must say that it is the requested range. */
function partial(url: string, asked: Range, response: Response): Omit<Answer, "body"> {
  const text = response.headers.get("content-range");
  const sent = contentRange(response);
  const said = `${url} answered a request for ${rangeHeader(asked)} with`;
  if (/^\s*multipart\//i.test(response.headers.get("content-type") ?? "")) {
    throw new UntrustedRange(`${said} several ranges`);
  }
  if (isEncoded(response)) throw new UntrustedRange(`${said} a part of compressed bytes`);
  // A server of another origin hides Content-Range unless it lists it in Access-Control-Expose-Headers.
  if (sent === undefined) {
    throw new UntrustedRange(
      text === null ? `${said} a range that it does not name` : `${said} "${text}"`,
    );
  }
  const { startBytes, endBytes, sizeBytes } = sent;
  const length = contentLength(response);
  const isAsked =
    startBytes === asked.startBytes &&
    startBytes < endBytes &&
    endBytes <= Math.min(asked.endBytes ?? sizeBytes, sizeBytes) &&
    (length === undefined || length === endBytes - startBytes);
  if (!isAsked) {
    const lengthText = length === undefined ? "" : ` and ${length} bytes`;
    throw new UntrustedRange(`${said} "${text}"${lengthText}`);
  }
  return { version: { ...validators(response), sizeBytes }, startBytes, endBytes, isRange: true };
}

function whole(url: string, range: Range | undefined, response: Response): Omit<Answer, "body"> {
  if (response.status !== 200) {
    throw new TypeError(`${url} answered ${response.status} to a request for the whole file`);
  }
  // Without a Range header, text may come compressed, and a server of another origin may hide that. Then the length is
  // not that of the file.
  const isText = /json|text|xml|javascript/i.test(response.headers.get("content-type") ?? "");
  const sizeBytes = isText && range === undefined ? undefined : contentLength(response);
  const version = { ...validators(response), sizeBytes };
  return { version, startBytes: 0, endBytes: sizeBytes, isRange: false };
}

function validators({ headers }: Response): Omit<FileVersion, "sizeBytes"> {
  // Model hubs state the hash of large files in this header.
  const sha256 = /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(headers.get("x-linked-etag") ?? "")?.[1];
  return {
    etag: headers.get("etag"),
    lastModified: headers.get("last-modified"),
    sha256: sha256?.toLowerCase(),
  };
}

function contentRange({ headers }: Response) {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers.get("content-range") ?? "");
  if (match === null) return undefined;
  const [startBytes = 0, last = 0, sizeBytes = 0] = match.slice(1).map(Number);
  return { startBytes, endBytes: last + 1, sizeBytes };
}

/** Undefined if absent, or if it counts encoded bytes. */
function contentLength(response: Response): number | undefined {
  const text = response.headers.get("content-length");
  return text !== null && /^\d+$/.test(text) && !isEncoded(response) ? Number(text) : undefined;
}

function isEncoded({ headers }: Response): boolean {
  return (headers.get("content-encoding") ?? "identity") !== "identity";
}

/** Seconds or a date (RFC 9110 section 10.2.3). */
function retryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
