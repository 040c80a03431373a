//! A `Request` in the form that crosses a MessagePort.

import type { WireRequest } from "./protocol.js";

/** A `Request` as bytes and header lines. */
export async function toWireRequest(request: Request): Promise<WireRequest> {
  return {
    method: request.method,
    url: request.url,
    headers: [...request.headers],
    body: new Uint8Array(await request.arrayBuffer()),
  };
}
