//! `engine.fetch`: a WHATWG fetch whose base paths are answered by the engine. Knows how to turn a
//! `Request` into bytes and headers, nothing of routes or JSON.

import { isBelowBasePath } from "../exchange/base_paths.js";
import { failureResponse } from "../exchange/error_response.js";
import { type ExchangeOptions, LostBeforeHead, exchange } from "../exchange/requester.js";
import { toWireRequest } from "../exchange/wire_request.js";

/** A fresh line to the engine for one exchange. */
export interface Line {
  port: MessagePort;
  lost: AbortSignal;
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
