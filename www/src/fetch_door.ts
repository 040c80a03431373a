//! `engine.fetch`: a WHATWG fetch whose base paths are answered by the engine. Knows how to turn a
//! `Request` into bytes and headers, nothing of routes or JSON.

import { isBelowBasePath } from "./base_paths.js";
import { failureResponse } from "./error_response.js";
import type { WireRequest } from "./protocol.js";
import { type ExchangeOptions, LostBeforeHead, exchange } from "./requester.js";

/** A fresh line to the engine for one exchange. */
export interface Line {
  port: MessagePort;
  lost: AbortSignal;
}

/** A `Request` as bytes and header lines. */
export async function toWireRequest(request: Request): Promise<WireRequest> {
  return {
    method: request.method,
    url: request.url,
    headers: [...request.headers],
    body: new Uint8Array(await request.arrayBuffer()),
  };
}

/**
 * A `fetch` that asks the engine for URLs below `basePaths`, whatever their host (so a prompt for
 * an SDK's default host never leaves the page), and the network for all others.
 */
export function createFetchDoor(
  openLine: () => Line,
  basePaths: readonly string[],
  transport: ExchangeOptions["transport"],
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    if (!isBelowBasePath(new URL(request.url), basePaths)) return fetch(request);
    // Not `request.signal`: some browsers make it follow the caller's only while it is in use.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const wire = await toWireRequest(request);
    signal?.throwIfAborted();
    const { port, lost } = openLine();
    try {
      return await exchange(port, wire, { lost, signal, transport });
    } catch (reason) {
      if (reason instanceof LostBeforeHead) return failureResponse(reason.failure);
      throw reason;
    }
  };
}
