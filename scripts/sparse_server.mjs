//! Serves one large file on the loopback address of which only parts are given; all other bytes are zero. Ranges,
//! validators and CORS are those of a usual file host.

import { createServer } from "node:http";

const PIECE_BYTES = 1 << 20;
const ZEROS = Buffer.alloc(PIECE_BYTES);

/** The bytes from `start` to `end`: at most a piece, and from one part or from a gap. */
function piece(parts, start, end) {
  const holder = parts.find(({ at, bytes }) => at <= start && start < at + bytes.length);
  if (holder !== undefined) {
    const from = start - holder.at;
    return holder.bytes.subarray(from, from + Math.min(end - start, PIECE_BYTES));
  }
  const next = Math.min(end, ...parts.map(({ at }) => at).filter((at) => at > start));
  return ZEROS.subarray(0, Math.min(next - start, PIECE_BYTES));
}

async function send(parts, response, start, end) {
  const closed = new Promise((resolve) => response.once("close", resolve));
  for (let at = start; at < end && !response.destroyed; ) {
    const bytes = piece(parts, at, end);
    at += bytes.length;
    if (!response.write(bytes)) {
      const drained = new Promise((resolve) => response.once("drain", resolve));
      await Promise.race([drained, closed]);
    }
  }
  response.end();
}

/** `parts` are `{ at, bytes }`. Resolves with `{ url, ranges, close }`; `ranges` lists the requests' Range headers. */
export async function serveSparse({ parts, sizeBytes, name = "model.gguf" }) {
  const ranges = [];
  const server = createServer((request, response) => {
    const headers = {
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "*",
      "access-control-expose-headers": "etag, content-range",
      "content-type": "application/octet-stream",
      "accept-ranges": "bytes",
      etag: '"sparse"',
    };
    if (request.method === "OPTIONS") {
      response.writeHead(204, headers).end();
      return;
    }
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    ranges.push(request.headers.range ?? "whole");
    const start = Number(range?.[1] ?? 0);
    const end = range?.[2] ? Math.min(Number(range[2]) + 1, sizeBytes) : sizeBytes;
    if (range) headers["content-range"] = `bytes ${start}-${end - 1}/${sizeBytes}`;
    headers["content-length"] = end - start;
    response.writeHead(range ? 206 : 200, headers);
    if (request.method === "HEAD") response.end();
    else void send(parts, response, start, end);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/${name}`,
    ranges,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
