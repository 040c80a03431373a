//! A configurable server of model files, with or without range requests, validators and lengths. It can be slow, break off, and
//! change its files. It records its requests.

import { once } from "node:events";
import { createServer } from "node:http";

/** Pseudorandom bytes, the same in every run. */
export function modelBytes(size, seed = 1) {
  const bytes = Buffer.alloc(size);
  for (let i = 0; i < size; i++) bytes[i] = (i * 2654435761 + seed * 97 + (i >> 8) * 31) & 255;
  return bytes;
}

/**
 * `state` may be changed at any time: `bytes`, `etag`, `lastModified`, `ranges`, `hideLength`, `exposeHeaders`,
 * `status`, `cutAfter` (bytes sent before the connection is closed), `statusAfterCut` (the status after that),
 * `stallAfter` (bytes sent before the response stops forever), `holdAfter` (bytes sent before the response pauses until
 * the member is deleted), `files` (bytes by name; all other names give 404). `requests` lists the Range headers.
 */
export async function startModelServer(state) {
  Object.assign(state, { ranges: true, exposeHeaders: true, requests: [], sentBytes: 0, ...state });
  const server = createServer((request, response) => {
    const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*" };
    if (request.method === "OPTIONS") {
      response.writeHead(204, cors).end();
      return;
    }
    state.requests.push(request.headers.range ?? "whole");
    if (state.status) {
      response.writeHead(state.status, cors).end("no");
      return;
    }
    const name = decodeURIComponent(
      new URL(request.url, "http://localhost").pathname.split("/").at(-1),
    );
    const bytes = state.files ? state.files[name] : state.bytes;
    if (bytes === undefined) {
      response.writeHead(404, cors).end("no such file");
      return;
    }
    const headers = { ...cors, "content-type": "application/octet-stream" };
    if (state.etag) headers.etag = state.etag;
    if (state.lastModified) headers["last-modified"] = state.lastModified;
    if (state.exposeHeaders) headers["access-control-expose-headers"] = "etag, content-range";
    const match = state.ranges && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const ifRange = request.headers["if-range"];
    const valid = !ifRange || ifRange === state.etag || ifRange === state.lastModified;
    const [start, end] =
      match && valid
        ? [Number(match[1]), match[2] ? Number(match[2]) + 1 : bytes.length]
        : [0, bytes.length];
    if (start >= bytes.length) {
      response.writeHead(416, { ...cors, "content-range": `bytes */${bytes.length}` }).end();
      return;
    }
    if (match && valid) headers["content-range"] = `bytes ${start}-${end - 1}/${bytes.length}`;
    if (!state.hideLength) headers["content-length"] = end - start;
    response.writeHead(match && valid ? 206 : 200, headers);
    if (request.method === "HEAD") {
      if (state.stallAfter !== 0) response.end();
      return;
    }
    send(state, response, bytes.subarray(start, end));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/dir/test%20model.gguf?x=1`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

async function send(state, response, bytes) {
  const piece = 256 * 1024;
  const closed = once(response, "close");
  for (let offset = 0; offset < bytes.length; offset += piece) {
    if (response.destroyed) return;
    if (state.cutAfter !== undefined && offset >= state.cutAfter) {
      if (state.statusAfterCut) state.status = state.statusAfterCut;
      response.destroy();
      return;
    }
    if (state.stallAfter !== undefined && offset >= state.stallAfter) return;
    while (offset >= (state.holdAfter ?? bytes.length) && !response.destroyed) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const part = bytes.subarray(offset, offset + piece);
    state.sentBytes += part.length;
    if (!response.write(part)) await Promise.race([once(response, "drain"), closed]);
  }
  response.end();
}
