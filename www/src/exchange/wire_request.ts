//! A `Request` in the form that crosses a MessagePort.

import type { WireRequest } from "./protocol.js";

/**
 * A `Request` as bytes and header lines, to `url`. A `body` that it was made of is taken as it is: in Chromium, reading a
 * request's body was seen to fail under load.
 */
export async function toWireRequest(
  request: Request,
  url: string,
  body?: BodyInit | null,
): Promise<WireRequest> {
  return {
    method: request.method,
    url,
    headers: [...request.headers],
    body:
      typeof body === "string"
        ? new TextEncoder().encode(body)
        : new Uint8Array(await request.arrayBuffer()),
  };
}
