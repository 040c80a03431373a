//! `engine.fetch`: a WHATWG fetch whose endpoint is the engine (`fetch_scope.ts`: which URLs). The Rust side handles routes and JSON.

import { failureResponse } from "../exchange/error_response.js";
import type { WireRequest } from "../exchange/protocol.js";
import {
  type Connection,
  type ExchangeOptions,
  LostBeforeHead,
  exchange,
} from "../exchange/requester.js";
import { toWireRequest } from "../exchange/wire_request.js";
import { attachmentsOf } from "./attachments.js";
import { endpointUrl, isAnswered, urlOf } from "./fetch_scope.js";

/** Answers a request; rejects with the reason of `signal` if that aborts first. */
export type Answering = (
  request: WireRequest,
  signal: AbortSignal | undefined,
) => Promise<Response>;

/** The requests that a door to the engine answers. */
export interface FetchScope {
  basePaths: readonly string[];
  /** Origins in addition to that of the page. */
  origins: readonly string[];
  /** The `fetch` for everything else. */
  network: typeof fetch;
}

/**
 * The program's `fetch` of this moment. An app may replace the global one by a door of this package, which must not ask
 * itself.
 */
export function networkFetch(): typeof fetch {
  return globalThis.fetch.bind(globalThis);
}

/** A `fetch` that has `answer` answer the URLs of its scope, and hands everything else to the network as it is. */
export function createFetchDoor(
  answer: Answering,
  { basePaths, origins, network }: FetchScope,
): typeof fetch {
  return async (input, init) => {
    const url = urlOf(input);
    if (url === undefined || !isAnswered(url, basePaths, origins)) return network(input, init);
    const request = new Request(input, init);
    // Not `request.signal`: in some browsers it follows the caller's signal only while it is in use.
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    const wire = await toWireRequest(request, endpointUrl(url, basePaths), init?.body);
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
      if (reason instanceof LostBeforeHead) return failureResponse(reason.failure, request.url);
      throw reason;
    }
  };
}
