//! A server of one model file that fails on purpose. `FaultServer.answer` computes responses. It is called over HTTP (`listen`)
//! or, for schedules with a virtual clock, by a `fetch` in the same process (`fetchFile`).

import { createServer } from "node:http";
import { once } from "node:events";

/** The faults of a response. `at` is the number of bytes of the body that are sent before the fault. */
export const FAULTS = {
  /** The connection is refused, or closed before the response head. */
  refuse: "refuse",
  /** The connection breaks. */
  cut: "cut",
  /** Nothing more is sent, before the head (`at` undefined) or in the body. */
  stall: "stall",
  /** From `at` on, `pieceBytes` (one, if undefined) are sent each second. */
  trickle: "trickle",
  /** Another status, perhaps with Retry-After. */
  status: "status",
  /** Content-Range and the bytes start at another offset. */
  otherRange: "otherRange",
  /** Content-Range has the requested range, but a wrong total. */
  wrongTotal: "wrongTotal",
  multipart: "multipart",
  /** A part of the compressed bytes. */
  encodedPart: "encodedPart",
  noContentRange: "noContentRange",
  /** The head promises more bytes than the body has. */
  short: "short",
  /** The body has more bytes than the head promises. */
  long: "long",
  /** The whole file instead of the range. */
  whole: "whole",
  /** Fewer bytes than requested (`length`, or half of them), with a correct head. */
  lessRange: "lessRange",
  /** A web page with status 200. */
  page: "page",
  /** The same page, declared as application/octet-stream. */
  pageInDisguise: "pageInDisguise",
  /** If-Range is ignored. */
  ignoreIfRange: "ignoreIfRange",
  /** The byte at `at` of the body is changed. Only a hash detects it. */
  flip: "flip",
};

const PAGE = "<!DOCTYPE html><html><title>Sign in</title></html>".repeat(20);

export class FaultServer {
  /** Requests so far: method, Range, and the number of bytes of the body that were sent. */
  requests = [];
  sentBytes = 0;
  /** `nextFault(request, number)` returns the fault of a response. */
  nextFault = () => undefined;
  /** Bytes by path; any other path gives 404. If undefined, all paths have `bytes`. */
  files;
  exposeHeaders = true;
  ranges = true;
  hideLength = false;
  /** Pause between pieces over HTTP. */
  pause_ms = 0;
  pieceBytes = 64 * 1024;

  constructor(members) {
    Object.assign(this, members);
  }

  /** The head and the plan of the body: `{ status, headers, body, fault }`, or `{ fault }` if there is no response. */
  answer({ method, path, headers }) {
    const record = {
      method,
      path,
      range: headers.range,
      ifRange: headers["if-range"],
      headers,
      sentBytes: 0,
    };
    this.requests.push(record);
    const fault = this.nextFault(record, this.requests.length - 1);
    const kind = fault?.kind;
    const cors = {
      "access-control-allow-origin": "*",
      ...(this.exposeHeaders && {
        "access-control-expose-headers":
          "etag, content-range, content-encoding, retry-after, x-linked-etag",
      }),
    };
    const plain = (status, more, text) => ({
      status,
      headers: { ...cors, ...more },
      body: Buffer.from(text),
      record,
    });
    if (kind === FAULTS.refuse) return { fault, record };
    if (kind === FAULTS.stall && fault.at === undefined) return { fault, record };
    if (kind === FAULTS.status) {
      const retry = fault.retryAfter === undefined ? {} : { "retry-after": `${fault.retryAfter}` };
      return plain(fault.status, { "content-type": "text/plain", ...retry }, "no");
    }
    if (kind === FAULTS.page)
      return plain(200, { "content-type": "text/html; charset=utf-8" }, PAGE);
    if (kind === FAULTS.pageInDisguise) {
      return plain(200, { "content-type": "application/octet-stream" }, PAGE);
    }
    const bytes = this.files ? this.files[decodeURIComponent(path.slice(1))] : this.bytes;
    if (bytes === undefined) return plain(404, { "content-type": "text/plain" }, "no such file");
    return { ...this.#file(bytes, record, fault, cors), fault, record };
  }

  #file(bytes, { range, ifRange }, fault, cors) {
    const kind = fault?.kind;
    const size = bytes.length;
    const headers = { ...cors, "content-type": "application/octet-stream" };
    if (this.etag) headers.etag = this.etag;
    if (this.lastModified) headers["last-modified"] = this.lastModified;
    if (this.linkedEtag) headers["x-linked-etag"] = this.linkedEtag;
    const match = this.ranges && /^bytes=(\d+)-(\d*)$/.exec(range ?? "");
    const isValid =
      !ifRange ||
      ifRange === this.etag ||
      ifRange === this.lastModified ||
      kind === FAULTS.ignoreIfRange;
    if (!match || !isValid || kind === FAULTS.whole) {
      let body = bytes;
      if (!this.hideLength) headers["content-length"] = size;
      // A response without a length cannot be too short or too long. It would be another file.
      const isLying = !this.hideLength;
      if (kind === FAULTS.short && isLying) body = bytes.subarray(0, Math.floor(size / 2));
      if (kind === FAULTS.long && isLying) body = Buffer.concat([bytes, bytes.subarray(0, 100)]);
      return { status: 200, headers, body };
    }
    let start = Number(match[1]);
    let end = match[2] === "" ? size : Math.min(size, Number(match[2]) + 1);
    if (start >= size) {
      return {
        status: 416,
        headers: { ...cors, "content-range": `bytes */${size}` },
        body: Buffer.alloc(0),
      };
    }
    if (kind === FAULTS.lessRange) {
      end = start + (fault.length ?? Math.max(1, Math.floor((end - start) / 2)));
    }
    let total = size;
    if (kind === FAULTS.wrongTotal) total = size + 7;
    if (kind === FAULTS.otherRange) start = start > 0 ? start - 1 : Math.min(1, end - 1);
    let body = bytes.subarray(start, end);
    headers["content-range"] = `bytes ${start}-${end - 1}/${total}`;
    if (!this.hideLength) headers["content-length"] = end - start;
    if (kind === FAULTS.multipart) headers["content-type"] = "multipart/byteranges; boundary=x";
    if (kind === FAULTS.encodedPart) headers["content-encoding"] = "gzip";
    if (kind === FAULTS.noContentRange) {
      delete headers["content-range"];
      body = Buffer.alloc(body.length);
    }
    if (kind === FAULTS.short) body = body.subarray(0, Math.floor(body.length / 2));
    if (kind === FAULTS.long) body = Buffer.concat([body, bytes.subarray(0, 100)]);
    return { status: 206, headers, body };
  }

  /** Yields the pieces of a body until its fault. Returns the fault that ended it. */
  *pieces({ body, fault, record }, pieceBytes = this.pieceBytes) {
    const kind = fault?.kind;
    const endsAt =
      kind === FAULTS.cut || kind === FAULTS.stall ? Math.min(fault.at, body.length) : body.length;
    const trickleFrom = kind === FAULTS.trickle ? fault.at : endsAt;
    for (let offset = 0, end; offset < endsAt; offset = end) {
      record.isTrickling = offset >= trickleFrom;
      end = record.isTrickling
        ? Math.min(endsAt, offset + (fault.pieceBytes ?? 1))
        : Math.min(trickleFrom, offset + pieceBytes);
      let piece = body.subarray(offset, end);
      if (kind === FAULTS.flip && fault.at >= offset && fault.at < offset + piece.length) {
        piece = Buffer.from(piece);
        piece[fault.at - offset] ^= 0x10;
      }
      this.sentBytes += piece.length;
      record.sentBytes += piece.length;
      yield piece;
    }
    return kind === FAULTS.cut || kind === FAULTS.stall ? kind : undefined;
  }

  /** Serves over HTTP on a free port; `close()` ends it. */
  async listen() {
    const server = createServer((request, response) => {
      if (request.method === "OPTIONS") {
        response.writeHead(204, {
          "access-control-allow-origin": "*",
          "access-control-allow-headers": "*",
        });
        response.end();
        return;
      }
      const { pathname } = new URL(request.url, "http://localhost");
      if (this.redirectFrom === pathname) {
        response
          .writeHead(302, { location: this.redirectTo, "access-control-allow-origin": "*" })
          .end();
        return;
      }
      const { method, headers } = request;
      this.#send(response, this.answer({ method, path: pathname, headers }), method);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.origin = `http://127.0.0.1:${server.address().port}`;
    this.close = () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    };
    return this;
  }

  async #send(response, answer, method) {
    const { status, headers, fault } = answer;
    if (status === undefined) {
      if (fault.kind === FAULTS.refuse) response.destroy();
      return;
    }
    response.writeHead(status, headers);
    if (method === "HEAD") {
      response.end();
      return;
    }
    const pieces = this.pieces(answer);
    for (;;) {
      if (response.destroyed) return;
      const { done, value } = pieces.next();
      if (done) {
        if (value === FAULTS.cut) response.destroy();
        else if (value === undefined) response.end();
        return;
      }
      if (answer.record.isTrickling) await new Promise((resolve) => setTimeout(resolve, 1000));
      if (!response.write(value)) {
        const raced = new AbortController();
        const { signal } = raced;
        const events = ["drain", "close"].map((name) => once(response, name, { signal }));
        await Promise.race(events).catch(() => {});
        for (const event of events) event.catch(() => {});
        raced.abort();
      }
      if (this.pause_ms > 0) await new Promise((resolve) => setTimeout(resolve, this.pause_ms));
    }
  }
}
