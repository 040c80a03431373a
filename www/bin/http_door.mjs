//! HTTP/1.1 around an engine: bytes in, bytes out. The endpoint itself decides what a request means.

import { once } from "node:events";
import { createServer } from "node:http";
import { isBelowBasePath } from "../dist/exchange/base_paths.js";

/** Headers that describe the connection and not the request. */
const OF_CONNECTION = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** An HTTP server that is not listening yet. `maxBodyBytes` is what the endpoint accepts. */
export function serverOf(engine, access, maxBodyBytes) {
  return createServer((request, response) => {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    answer(engine, access, maxBodyBytes, { request, response, signal: gone.signal }).catch(() => {
      // The client is gone, or the answer broke off after its head. The client must not take it for a whole answer.
      response.destroy();
    });
  });
}

async function answer(engine, access, maxBodyBytes, { request, response, signal }) {
  const reason = access.refusal(request.headers);
  if (reason !== undefined) {
    sendError(response, 403, reason, "origin_not_allowed");
    return;
  }
  // Fetch has no requests with these methods.
  if (["CONNECT", "TRACE", "TRACK"].includes(request.method)) {
    sendError(response, 405, `${request.method} is not supported`, "method_not_allowed");
    return;
  }
  const body = await bodyOf(request, maxBodyBytes);
  const hasBody = !["GET", "HEAD"].includes(request.method);
  const answered = await engine.fetch(urlOf(engine, request.url), {
    method: request.method,
    headers: headersOf(request),
    signal,
    ...(hasBody && { body }),
  });
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body !== null && request.method !== "HEAD") {
    for await (const bytes of answered.body) {
      if (!response.write(bytes)) await once(response, "drain", { signal });
    }
  }
  response.end();
}

/** Paths that the engine does not answer stay below a base path, where it says so: `engine.fetch` would send others on. */
function urlOf(engine, path) {
  const url = new URL(`http://localhost${path.startsWith("/") ? path : "/"}`);
  if (!isBelowBasePath(url, engine.basePaths)) url.pathname = `${engine.basePaths[0]}/_/`;
  return url;
}

function headersOf({ rawHeaders }) {
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index].toLowerCase();
    if (!OF_CONNECTION.has(name)) headers.append(name, rawHeaders[index + 1]);
  }
  return headers;
}

/** The body, or a little more than `maxBytes` of it, because the endpoint refuses longer bodies. */
async function bodyOf(request, maxBytes) {
  const pieces = [];
  let bytes = 0;
  for await (const piece of request.iterator({ destroyOnReturn: false })) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes) break;
  }
  // The client may read the answer only after it has sent everything.
  request.resume();
  return new Uint8Array(Buffer.concat(pieces));
}

/** The answer has no CORS headers, so that the page that sent the request cannot read it. */
function sendError(response, status, message, code) {
  const error = { message, type: "invalid_request_error", param: null, code };
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify({ error }));
}
