//! Sends the requests for a model's files with the headers, the credentials and the token that the app configured. The
//! callers choose what to request and interpret the answers.

import type { RequestOptions } from "../../exchange/protocol.js";
import type { FetchFile } from "./http.js";

export const NO_OPTIONS: RequestOptions = { headers: [], init: {}, token: undefined };

/**
 * The token goes to its own origin only. If that redirects to another origin, such as a CDN, the browser removes the
 * `Authorization` header; other headers stay.
 */
export function fetchWith({ headers, init, token }: RequestOptions): FetchFile {
  return (url, request) => {
    const all = new Headers(headers);
    if (token !== undefined && new URL(url).origin === token.origin && !all.has("authorization")) {
      all.set("authorization", `Bearer ${token.value}`);
    }
    for (const [name, value] of new Headers(request.headers)) all.set(name, value);
    return fetch(url, { ...init, ...request, headers: all });
  };
}
