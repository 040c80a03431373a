//! HTTP/1.1 around an engine: bytes in, bytes out. The endpoint itself decides what a request means.

import { createServer } from "node:http";
import { isBelowBasePath, rootRouteBelow } from "../dist/exchange/base_paths.js";
import { errorParts } from "../dist/exchange/error_response.js";
import { ConnectionTurns } from "./connection_turns.mjs";
import { limitsOf } from "./http_limits.mjs";
import { BodyBudget, BodyRefused, RequestBody } from "./request_body.mjs";
import { bodyCheck, hasBody, lengthOf } from "./request_head.mjs";
import { ResponseWriter } from "./response_writer.mjs";

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

/** The interval at which Node looks for connections whose time is over, in ms. */
const CHECK_INTERVAL_MS = 500;

/**
 * An HTTP server that is not listening yet. `apiKey` and `allowOrigin` (of CORS) are the endpoint's; `given` are limits of
 * `http_limits.mjs`.
 */
export function serverOf(engine, access, { apiKey, allowOrigin = "*", ...given } = {}) {
  const limits = limitsOf(given);
  const door = {
    ...{ engine, access, allowOrigin, limits },
    budget: new BodyBudget(limits.bodyBudgetBytes),
    readsBody: bodyCheck({ basePaths: engine.basePaths, apiKey }),
  };
  const turns = new ConnectionTurns();
  const server = createServer({
    headersTimeout: limits.headerTimeoutMs,
    // Node answers both with 408.
    requestTimeout: Math.max(limits.bodyTimeoutMs, limits.headerTimeoutMs),
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  });
  server.maxConnections = limits.maxConnections;
  // `checkContinue`: the client waits with its body until it is told to go on.
  for (const event of ["request", "checkContinue"]) {
    server.on(event, (request, response) => {
      const gone = new AbortController();
      response.on("close", () => gone.abort());
      const waits = event === "checkContinue";
      const exchange = { request, response, signal: gone.signal, waits };
      turns.take(request, response, () => answer(door, exchange));
    });
  }
  return server;
}

async function answer(door, exchange) {
  const { access, allowOrigin, budget, engine, limits, readsBody } = door;
  const { request, response, signal, waits } = exchange;
  const writer = new ResponseWriter(response, limits.writeTimeoutMs);
  const url = urlOf(engine, request.url);
  const refuse = (refusal, origin) =>
    sendWhole(writer, exchange, errorAnswer(refusal, url, origin));
  const reason = access.refusal(request.headers);
  // Without CORS headers, so that the page that sent the request cannot read the answer.
  if (reason !== undefined) return refuse([403, "origin_not_allowed", reason]);
  // Fetch has no requests with these methods.
  if (["CONNECT", "TRACE", "TRACK"].includes(request.method)) {
    return refuse([405, "method_not_allowed", `${request.method} is not supported`]);
  }
  const ask = (init) =>
    engine.fetch(url, { method: request.method, headers: headersOf(request), signal, ...init });
  if (!readsBody(url, request)) return sendWhole(writer, exchange, await ask({}));

  const { maxBodyBytes } = limits;
  const tooLarge = (length) => [
    ...[413, "request_too_large"],
    `the body has ${length === undefined ? "" : `${length} bytes, `}more than ${maxBodyBytes} bytes`,
  ];
  const length = lengthOf(request);
  if (length > maxBodyBytes) return refuse(tooLarge(length), allowOrigin);
  if (waits) response.writeContinue();
  const body = new RequestBody(budget);
  try {
    const bytes = await body.read(request, maxBodyBytes, length);
    await sendAsItComes(writer, exchange, await ask({ body: bytes }));
  } catch (error) {
    if (!(error instanceof BodyRefused)) throw error;
    // The rest of the body is read on for a while, but not kept.
    body.release();
    const busy = [503, "server_busy", "the server holds too many bytes of other requests"];
    await refuse(error.reason === "busy" ? busy : tooLarge(undefined), allowOrigin);
  } finally {
    body.release();
  }
}

/** Sends an answer to a request whose body was read. */
async function sendAsItComes(writer, { request, response }, answered) {
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  if (answered.body !== null && request.method !== "HEAD") {
    for await (const bytes of answered.body) await writer.write(bytes);
  }
  await writer.end();
}

/** Sends a short answer; if the request has a body, it is not kept, and the connection is closed. */
async function sendWhole(writer, { request, response, waits }, answered) {
  const bytes = new Uint8Array(await answered.arrayBuffer());
  const isLeft = hasBody(request);
  const hasNone = answered.status === 204 || request.method === "HEAD";
  response.writeHead(answered.status, {
    ...Object.fromEntries(answered.headers),
    ...(isLeft && { connection: "close" }),
    ...(!hasNone && { "content-length": bytes.length }),
  });
  if (hasNone) response.flushHeaders();
  else await writer.write(bytes);
  await (isLeft && !waits ? writer.endAfterBody(request) : writer.end());
}

/** Paths that the engine does not answer stay below a base path, where it says so: `engine.fetch` would send others on. */
function urlOf(engine, path) {
  const url = new URL(`http://localhost${path.startsWith("/") ? path : "/"}`);
  const [base] = engine.basePaths;
  if (!isBelowBasePath(url, engine.basePaths)) {
    url.pathname = rootRouteBelow(base, url.pathname) ?? `${base}/`;
  }
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

/**
 * An error of this server itself in the form of the routes at `url` (specification 2.1 and 22.4); readable by pages of
 * `allowOrigin`, if it is given.
 */
function errorAnswer([status, code, message], url, allowOrigin) {
  const { headers: parts, exposed, body } = errorParts({ status, code, message }, url.href);
  const headers = new Headers(parts);
  if (status === 503) headers.set("retry-after", "1");
  if (allowOrigin !== undefined) {
    headers.set("access-control-allow-origin", allowOrigin);
    if (allowOrigin !== "*") headers.set("vary", "Origin");
    headers.set("access-control-expose-headers", exposed);
  }
  return new Response(body, { status, headers });
}
