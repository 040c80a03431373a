//! Tells from the head of a request whether its body is worth reading: the checks of specification 2.3 that come before the
//! size. It refuses nothing: a request that fails them goes to the endpoint without its body, and the endpoint refuses it.

import { createHash, timingSafeEqual } from "node:crypto";
import { endpointRoute } from "../dist/exchange/base_paths.js";

/** A function of URL, method and headers that is true if the endpoint looks at the body. */
export function bodyCheck({ basePaths, apiKey }) {
  const isAuthorized = typeof apiKey === "string" ? bearerCheck(apiKey) : () => true;
  return (url, { method, headers }) => {
    if (method !== "POST" || endpointRoute(url, basePaths)?.method !== method) return false;
    return isAuthorized(headers.authorization ?? "") && isJson(headers["content-type"] ?? "");
  };
}

/** True if the client sends a body, or says so. */
export function hasBody({ headers }) {
  return headers["transfer-encoding"] !== undefined || lengthOf({ headers }) > 0;
}

/** The size of the body in bytes; undefined if it is not known before its end. */
export function lengthOf({ headers }) {
  const length = headers["content-length"];
  return headers["transfer-encoding"] === undefined ? Number(length ?? 0) : undefined;
}

/** Compares hashes, so that the time tells nothing about the key, its length included. */
function bearerCheck(key) {
  const digest = (text) => createHash("sha256").update(text).digest();
  const expected = digest(key);
  return (header) => {
    const trimmed = header.trim();
    const end = trimmed.indexOf(" ");
    const isBearer = trimmed.slice(0, Math.max(end, 0)).toLowerCase() === "bearer";
    return isBearer && timingSafeEqual(digest(trimmed.slice(end).trimStart()), expected);
  };
}

/** `application/json` or `application/*+json`, with any parameters. */
const isJson = (type) => /^\s*application\/(json|[^;]+\+json)\s*(;|$)/i.test(type);
