//! A static file server on the loopback address, with correct media types, byte ranges and no caching.

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";

const MEDIA_TYPES = {
  ".css": "text/css; charset=utf-8",
  ".gguf": "application/octet-stream",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".mjs": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".ts": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json",
};

/** `{ start, end }` (inclusive), null if it cannot be satisfied, undefined for the whole file. */
function parseRange(header, size_bytes) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return undefined;
  const start = match[1] === "" ? Math.max(0, size_bytes - Number(match[2])) : Number(match[1]);
  const end =
    match[1] === "" || match[2] === ""
      ? size_bytes - 1
      : Math.min(Number(match[2]), size_bytes - 1);
  return start <= end ? { start, end } : null;
}

/** The file for a path under the mounts, or undefined. The longest mounted prefix wins. */
async function resolveFile(mounts, path) {
  const prefix = Object.keys(mounts)
    .filter((mount) => path === mount || (mount.endsWith("/") && path.startsWith(mount)))
    .sort((a, b) => b.length - a.length)[0];
  if (prefix === undefined) return undefined;
  const base = normalize(mounts[prefix]);
  let file = prefix.endsWith("/") ? join(base, path.slice(prefix.length)) : base;
  if (
    prefix.endsWith("/") &&
    file !== base &&
    !file.startsWith(base.endsWith(sep) ? base : base + sep)
  )
    return undefined;
  let info = await stat(file).catch(() => undefined);
  if (info?.isDirectory()) {
    if (!path.endsWith("/")) return { redirect: `${path}/` };
    file = join(file, "index.html");
    info = await stat(file).catch(() => undefined);
  }
  return info?.isFile()
    ? {
        file,
        size_bytes: info.size,
        etag: `"${info.size.toString(36)}-${info.mtimeMs.toString(36)}"`,
      }
    : undefined;
}

async function answer(mounts, pages, always, request, response) {
  const url = new URL(request.url, "http://localhost");
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.writeHead(405, { Allow: "GET, HEAD" }).end();
    return;
  }
  const headers = {
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    ...always,
  };
  const page = pages[url.pathname];
  if (page !== undefined) {
    const { text, headers: own } = typeof page === "string" ? { text: page } : page;
    response.writeHead(200, { ...headers, "Content-Type": MEDIA_TYPES[".html"], ...own }).end(text);
    return;
  }
  const found = await resolveFile(mounts, decodeURIComponent(url.pathname));
  if (!found) {
    response.writeHead(404, { "Content-Type": "text/plain" }).end("Not found\n");
    return;
  }
  if (found.redirect) {
    response.writeHead(302, { Location: found.redirect }).end();
    return;
  }
  headers["Content-Type"] =
    MEDIA_TYPES[extname(found.file).toLowerCase()] ?? "application/octet-stream";
  headers["Accept-Ranges"] = "bytes";
  headers.ETag = found.etag;
  // The service worker's script is beside the package and controls the whole origin.
  headers["Service-Worker-Allowed"] = "/";
  if (request.headers["if-none-match"] === found.etag) {
    response.writeHead(304, headers).end();
    return;
  }
  const range = parseRange(request.headers.range, found.size_bytes);
  if (range === null) {
    response.writeHead(416, { "Content-Range": `bytes */${found.size_bytes}` }).end();
    return;
  }
  const { start, end } = range ?? { start: 0, end: found.size_bytes - 1 };
  headers["Content-Length"] = Math.max(0, end - start + 1);
  if (range) headers["Content-Range"] = `bytes ${start}-${end}/${found.size_bytes}`;
  response.writeHead(range ? 206 : 200, headers);
  if (request.method === "HEAD" || found.size_bytes === 0) {
    response.end();
    return;
  }
  const stream = createReadStream(found.file, { start, end });
  stream.on("error", () => response.destroy());
  response.on("close", () => stream.destroy());
  stream.pipe(response);
}

/** Browsers give threads shared memory in pages with these headers: they are cross-origin isolated. */
const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};
/** Pages of every origin may read the files, as on a CDN. In isolated pages, WebKit wants the second one, too. */
const CORS = { "Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin" };

/**
 * Serves `mounts` (URL prefix ending in "/" -> folder, or URL path -> file) and `pages` (URL path -> HTML text, or `{ text, headers }`).
 * Resolves with `{ origin, close }`. Port 0 selects any free port. If `port` is in use, any free port is used.
 * The pages are cross-origin isolated if `isolated` is true. With `cors`, pages of other origins may read the files.
 * `headers` are sent with every answer that has a file or a page.
 */
export async function serve({
  mounts,
  pages = {},
  port = 0,
  isolated = false,
  cors = false,
  headers = {},
}) {
  const always = { ...(isolated && ISOLATION), ...(cors && CORS), ...headers };
  const server = createServer((request, response) => {
    answer(mounts, pages, always, request, response).catch(() => {
      if (!response.headersSent) response.writeHead(400, { "Content-Type": "text/plain" });
      response.end();
    });
  });
  const listen = (number) =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(number, "127.0.0.1", () => {
        server.off("error", reject);
        resolve();
      });
    });
  await listen(port).catch((error) => {
    if (port === 0 || error.code !== "EADDRINUSE") throw error;
    return listen(0);
  });
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
