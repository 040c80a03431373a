//! HTTP requests for a model file: its version, its size and byte ranges. Nothing is cached here.

import { type ModelSource, checkRange } from "./source.js";

/** The server has no such file. */
export class NoSuchFile extends TypeError {}

/** Distinguishes versions of a file. */
export interface FileVersion {
  etag: string | null;
  lastModified: string | null;
  /** Undefined if the server does not send it. */
  sizeBytes: number | undefined;
}

/** An answer of the server. */
export interface Download extends FileVersion {
  /** Offset of `body` in the file: as requested, or 0 if the server sends the whole file. */
  startBytes: number;
  body: ReadableStream<Uint8Array<ArrayBuffer>>;
  /** True if the server supports range requests. */
  ranges: boolean;
}

/** True only if both are certainly the same bytes. */
export function sameVersion(a: FileVersion, b: FileVersion): boolean {
  if (a.sizeBytes !== undefined && b.sizeBytes !== undefined && a.sizeBytes !== b.sizeBytes) {
    return false;
  }
  if (a.etag !== null || b.etag !== null) return a.etag === b.etag;
  if (a.lastModified !== null || b.lastModified !== null) return a.lastModified === b.lastModified;
  return a.sizeBytes !== undefined && a.sizeBytes === b.sizeBytes;
}

/**
 * Requests `url` from byte `startBytes` on. With `since`, a server whose file has changed sends the new one from
 * the start.
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
  // If-Range must not contain a weak ETag (RFC 9110 section 13.1.5).
  const validator = since?.etag?.startsWith("W/") ? since.lastModified : since?.etag;
  if (startBytes > 0 && validator) headers.set("if-range", validator);
  // `no-store` keeps gigabytes out of the HTTP cache.
  const response = await fetch(url, { headers, signal, cache: "no-store" });
  // There are no bytes after `startBytes`: the file has become shorter, or all of it was already there.
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
  // A server of another origin may hide Content-Range; then Content-Length gives the size.
  const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  const sentFrom = range ? Number(range[1]) : startBytes;
  const rest = contentLength(response);
  const sizeBytes =
    range && range[2] !== "*" ? Number(range[2]) : rest === undefined ? undefined : sentFrom + rest;
  return { ...version, sizeBytes, startBytes: sentFrom, body, ranges: true };
}

/**
 * A small file as a whole; works without any size from the server.
 *
 * @throws TypeError naming the URL and what the server answered
 */
export async function fetchWhole(url: string, signal: AbortSignal): Promise<Blob> {
  const response = await fetch(url, { signal, cache: "no-store" });
  if (!response.ok) throw await refused(url, response);
  return response.blob();
}

/** The error for an answer without the file; cancels the body. */
export async function refused(url: string, response: Response): Promise<TypeError> {
  await response.body?.cancel();
  const { status, statusText } = response;
  const message = `${url} answered ${status} ${statusText}`.trim();
  return status === 404 || status === 410 ? new NoSuchFile(message) : new TypeError(message);
}

/** A file read by HTTP range requests. */
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

/** Undefined if absent, or if it counts encoded bytes. */
function contentLength(response: Response): number | undefined {
  const text = response.headers.get("content-length");
  const encoded = response.headers.get("content-encoding");
  return text !== null && (encoded === null || encoded === "identity") ? Number(text) : undefined;
}
