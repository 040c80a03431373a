//! Resolves how a model's files are requested: the `fetch` option and the hub's token. Checks them where the
//! caller's line is still on the stack.

import type { HeaderList, RequestOptions } from "../exchange/protocol.js";
import { type HubOptions, hubBase } from "./hub.js";

/** Options of `fetch` that apply to every request for a model's files. Headers may be secret: they are not stored. */
export interface FetchOptions {
  headers?: HeadersInit;
  /** `"include"` sends cookies to other origins; their server must allow that. */
  credentials?: RequestCredentials;
  mode?: "cors" | "same-origin";
  priority?: RequestPriority;
  referrer?: string;
  referrerPolicy?: ReferrerPolicy;
}

const NAMES = ["headers", "credentials", "mode", "priority", "referrer", "referrerPolicy"];

/** The headers that the download itself sets. */
const RESERVED = ["range", "if-range", "if-none-match", "if-modified-since"];

/** @throws TypeError naming the option that cannot be used */
export function resolveRequests(options: FetchOptions, hub: HubOptions): RequestOptions {
  for (const [name, value] of Object.entries(options)) {
    if (!NAMES.includes(name)) {
      throw new TypeError(`fetch.${name} cannot be set: fetch takes ${NAMES.join(", ")}`);
    }
    try {
      // Reports invalid values here instead of in the first download.
      new Request("https://inpage.invalid/", { [name]: value });
    } catch (error) {
      const reason = error instanceof Error ? error.message : error;
      throw new TypeError(`fetch.${name} has an invalid value: ${reason}`);
    }
  }
  const { headers, ...init } = options;
  const list: HeaderList = [...new Headers(headers)];
  const reserved = list.find(([name]) => RESERVED.includes(name));
  if (reserved) {
    throw new TypeError(`fetch.headers must not contain ${reserved[0]}: the download sets it`);
  }
  return { headers: list, init, token: tokenOf(hub) };
}

function tokenOf(hub: HubOptions): RequestOptions["token"] {
  const { token } = hub;
  if (token === undefined) return undefined;
  const { protocol, hostname, origin } = hubBase(hub);
  const isLocal = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
  if (protocol !== "https:" && !isLocal) {
    throw new TypeError(`hub.token would be sent to ${origin} in the clear: use https`);
  }
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError("hub.token must be an access token: printable characters without spaces");
  }
  return { origin, value: token };
}
