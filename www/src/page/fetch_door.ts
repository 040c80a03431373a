//! `engine.fetch`: a WHATWG fetch whose base paths the engine answers. The Rust side handles routes and JSON.

import { isBelowBasePath } from "../exchange/base_paths.js";
import { attachmentsOf } from "./attachments.js";
import { failureResponse } from "../exchange/error_response.js";
import type { WireRequest } from "../exchange/protocol.js";
import {
  type Connection,
  type ExchangeOptions,
  LostBeforeHead,
  exchange,
} from "../exchange/requester.js";
import { toWireRequest } from "../exchange/wire_request.js";

/** Answers a request; rejects with the reason of `signal` if that aborts first. */
export type Answering = (
  request: WireRequest,
  signal: AbortSignal | undefined,
) => Promise<Response>;

/**
 * A `fetch` that has `answer` answer URLs below `basePaths`, and asks the network for all others. The host is
 * ignored, so a prompt for an SDK's default host never leaves the page.
 */
export function createFetchDoor(answer: Answering, basePaths: readonly string[]): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    if (!isBelowBasePath(new URL(request.url), basePaths)) return fetch(request);
    // Not `request.signal`: in some browsers it follows the caller's signal only while it is in use.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const wire = await toWireRequest(request, init?.body);
    signal?.throwIfAborted();
    return answer({ ...wire, attachments: attachmentsOf(init) }, signal);
  };
}

/** Has the engine at the other end of a port answer. */
export function answerOver(
  openPort: (afterLoss: boolean) => Promise<Connection>,
  transport: ExchangeOptions["transport"],
): Answering {
  const reconnect = () => openPort(true);
  return async (request, signal) => {
    const connection = await openPort(false);
    try {
      return await exchange(connection, request, { signal, transport, reconnect });
    } catch (reason) {
      if (reason instanceof LostBeforeHead) return failureResponse(reason.failure);
      throw reason;
    }
  };
}
