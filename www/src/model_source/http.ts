//! What a server says about a model file, and its bytes by range. Does not store anything.

import { type ModelSource, checkRange } from "./source.js";

/** The server has no such file. */
export class NoSuchFile extends TypeError {}

/** Tells one version of a file from another. */
export interface FileVersion {
  etag: string | null;
  lastModified: string | null;
  /** Unknown when the server hides or does not know it. */
  sizeBytes: number | undefined;
}

/** One answer of the server. */
export interface Download extends FileVersion {
  /** First byte of `body` in the file: what was asked for, or 0 if the server sends it whole. */
  startBytes: number;
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** True if single ranges can be had. */
  ranges: boolean;
}

/** True if both certainly name the same bytes. */
export function sameVersion(a: FileVersion, b: FileVersion): boolean {
  if (a.sizeBytes !== undefined && b.sizeBytes !== undefined && a.sizeBytes !== b.sizeBytes) {
    return false;
  }
  if (a.etag !== null || b.etag !== null) return a.etag === b.etag;
  if (a.lastModified !== null || b.lastModified !== null) return a.lastModified === b.lastModified;
  return a.sizeBytes !== undefined && a.sizeBytes === b.sizeBytes;
}

/**
 * Asks for `url` from byte `startBytes` on. With `since`, a server whose file has changed sends the
 * new one whole.
 *
 * @throws TypeError naming the URL and what the server answered
 */
export async function download(
  url: string,
  startBytes: number,
  since: FileVersion | undefined,
  signal: AbortSignal,
): Promise<Download> {
  const headers = new Headers({ range: `bytes=${startBytes}-` });
  // A weak ETag must not be used here (RFC 9110 section 13.1.5).
  const validator = since?.etag?.startsWith("W/") ? since.lastModified : since?.etag;
  if (startBytes > 0 && validator) headers.set("if-range", validator);
  // `no-store`: ranges of gigabytes have no business in the HTTP cache.
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  // Nothing lies behind `startBytes`: the file has shrunk, or it was all there already.
  if (response.status === 416 && startBytes > 0) return download(url, 0, undefined, signal);
  if (!response.ok || response.body === null) throw await refused(url, response);
  const version = {
    etag: response.headers.get("etag"),
    lastModified: response.headers.get("last-modified"),
  };
  const body = response.body as ReadableStream<Uint8Array<ArrayBuffer>>;
  if (response.status !== 206) {
    return { ...version, sizeBytes: contentLength(response), startBytes: 0, body, ranges: false };
  }
  // Another origin may hide Content-Range; then the length of what follows tells as much.
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  const sentFrom = range ? Number(range[1]) : startBytes;
  const rest = contentLength(response);
  const sizeBytes =
    range && range[2] !== "*" ? Number(range[2]) : rest === undefined ? undefined : sentFrom + rest;
  return { ...version, sizeBytes, startBytes: sentFrom, body, ranges: true };
}

/**
 * All bytes of a small file, whatever the server does not tell of it.
 *
 * @throws TypeError naming the URL and what the server answered
 */
export async function fetchWhole(url: string, signal: AbortSignal): Promise<Blob> {
  const response = await fetch(url, { signal, cache: "no-store" });
  if (!response.ok) throw await refused(url, response);
  return response.blob();
}

/** What an answer without the file says; its body is given up. */
export async function refused(url: string, response: Response): Promise<TypeError> {
  await response.body?.cancel();
  const { status, statusText } = response;
  const message = `${url} answered ${status} ${statusText}`.trim();
  return status === 404 || status === 410 ? new NoSuchFile(message) : new TypeError(message);
}

/** A file read by HTTP ranges, nothing stored. */
export function rangeSource(url: string, version: FileVersion, signal: AbortSignal): ModelSource {
  const source: ModelSource = {
    size: version.sizeBytes ?? 0,
    async read(offset, length) {
      checkRange(source, offset, length);
      const range = `bytes=${offset}-${offset + length - 1}`;
      const response = await fetch(url, { headers: { range }, signal, cache: "no-store" });
      const bytes =
        response.status === 206 ? new Uint8Array(await response.arrayBuffer()) : undefined;
      if (bytes?.length !== length) {
        await response.body?.cancel().catch(() => {});
        throw new TypeError(`${url} answered ${response.status} to a request for ${range}`);
      }
      const etag = response.headers.get("etag");
      if (etag !== null && version.etag !== null && etag !== version.etag) {
        throw new TypeError(`${url} changed while it was being read`);
      }
      return bytes;
    },
  };
  return source;
}

/** Undefined when absent or when it counts encoded bytes. */
function contentLength(response: Response): number | undefined {
  const text = response.headers.get("content-length");
  const encoded = response.headers.get("content-encoding");
  return text !== null && (encoded === null || encoded === "identity") ? Number(text) : undefined;
}
