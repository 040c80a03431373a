//! Decides which requests `inpage serve` answers. It listens only on this machine unless told otherwise, but any page in a
//! browser on this machine can send requests to it, from its own origin (`Origin`) or to a name that resolves here by DNS
//! rebinding (`Host`). `examples/serve/access.rs` has the same rules.

import { isIPv4, isIPv6 } from "node:net";

export class Access {
  #hosts = new Set();
  #origins = new Set();
  #everyOrigin = false;

  /** Allows requests to a name, given without a port. */
  allowHost(host) {
    this.#hosts.add(host.toLowerCase());
  }

  /**
   * Allows pages of an origin; `*` allows every page.
   *
   * @throws Error if it is not an origin
   */
  allowOrigin(origin) {
    if (origin === "*") {
      this.#everyOrigin = true;
      return;
    }
    if (!/^https?:\/\/[^/]+$/.test(origin)) {
      throw new Error(
        `--allow-origin is *, or an origin such as https://app.example.com, not ${origin}`,
      );
    }
    this.#origins.add(origin.toLowerCase());
  }

  /** The reason why a request with these headers is refused, and the option that allows it; undefined if it is not refused. */
  refusal(headers) {
    const host = headers.host?.toLowerCase();
    if (host !== undefined && !this.#allowsHost(withoutPort(host))) {
      return `this server answers requests to this machine, not to ${host}; --allow-host ${withoutPort(host)} allows them`;
    }
    const origin = headers.origin?.toLowerCase();
    if (origin !== undefined && !this.#allowsOrigin(origin)) {
      const allowed = origin === "null" ? "*" : origin;
      return `pages of ${origin} may not use this server; --allow-origin ${allowed} allows them`;
    }
    return undefined;
  }

  #allowsHost(host) {
    return isThisMachine(host) || this.#hosts.has(host);
  }

  #allowsOrigin(origin) {
    const authority = /:\/\/(.*)$/.exec(origin)?.[1];
    const isLocal = authority !== undefined && isThisMachine(withoutPort(authority));
    return this.#everyOrigin || isLocal || this.#origins.has(origin);
  }
}

/** Browsers resolve `localhost` and names below it to the loopback address themselves. */
function isThisMachine(host) {
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  const address = host.replace(/^\[|\]$/g, "");
  if (isIPv4(address)) return address.startsWith("127.");
  return isIPv6(address) && new URL(`http://[${address}]`).hostname === "[::1]";
}

/** `[::1]:8080` to `[::1]`, `localhost:8080` to `localhost`. */
const withoutPort = (authority) => authority.replace(/:\d*$/, "");
