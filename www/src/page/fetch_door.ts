//! `engine.fetch`: a WHATWG fetch whose base paths the engine answers. The Rust side handles routes and JSON.

import { isBelowBasePath } from "../exchange/base_paths.js";
import { failureResponse } from "../exchange/error_response.js";
import {
  type Connection,
  type ExchangeOptions,
  LostBeforeHead,
  exchange,
} from "../exchange/requester.js";
import { toWireRequest } from "../exchange/wire_request.js";

/**
 * A `fetch` that asks the engine for URLs below `basePaths` and the network for all others. The host is
 * ignored, so a prompt for an SDK's default host never leaves the page.
 */
export function createFetchDoor(
  openPort: (afterLoss: boolean) => Promise<Connection>,
  basePaths: readonly string[],
  transport: ExchangeOptions["transport"],
): typeof fetch {
  const reconnect = () => openPort(true);
  return async (input, init) => {
    const request = new Request(input, init);
    if (!isBelowBasePath(new URL(request.url), basePaths)) return fetch(request);
    // Not `request.signal`: in some browsers it follows the caller's signal only while it is in use.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const wire = await toWireRequest(request, init?.body);
    signal?.throwIfAborted();
    const connection = await openPort(false);
    try {
      return await exchange(connection, wire, { signal, transport, reconnect });
    } catch (reason) {
      if (reason instanceof LostBeforeHead) return failureResponse(reason.failure);
      throw reason;
    }
  };
}
