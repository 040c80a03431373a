//! Tells which version of a file an answer is about, and whether two answers are about the same one.

/** Distinguishes versions of a file. */
export interface FileVersion {
  etag: string | null;
  lastModified: string | null;
  /** Undefined if the server does not send it. */
  sizeBytes: number | undefined;
  /** The SHA-256 of the file in hexadecimal, if the server states it (model hubs do). */
  sha256: string | undefined;
}

/** True only if bytes of both may be joined: a strong validator agrees and nothing disagrees. */
export function joinable(a: FileVersion, b: FileVersion): boolean {
  if (contradicts(a, b)) return false;
  // A weak ETag says that the meaning is the same, not the bytes (RFC 9110 section 8.8.1).
  const isStrong = a.etag !== null && a.etag === b.etag && !a.etag.startsWith("W/");
  const isSameHash = a.sha256 !== undefined && a.sha256 === b.sha256;
  return isStrong || isSameHash || (a.lastModified !== null && a.lastModified === b.lastModified);
}

/** True if nothing says that the server has another version than the stored one. */
export function isCurrent(stored: FileVersion, now: FileVersion): boolean {
  return !contradicts(stored, now);
}

/** Servers send different validators with different methods, so a missing one is no contradiction. */
function contradicts(a: FileVersion, b: FileVersion): boolean {
  const differ = <T>(one: T | null | undefined, other: T | null | undefined) =>
    one != null && other != null && one !== other;
  if (differ(a.sizeBytes, b.sizeBytes)) return true;
  if (a.sha256 !== undefined && b.sha256 !== undefined) return a.sha256 !== b.sha256;
  if (a.etag !== null && b.etag !== null) return weak(a.etag) !== weak(b.etag);
  return differ(a.lastModified, b.lastModified);
}

const weak = (etag: string) => etag.replace(/^W\//, "");
