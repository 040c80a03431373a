//! Claims: which open pages serve which URLs. A claim is a Web Lock whose name contains the whole claim. So it ends with
//! its page, and a service worker that was stopped finds every claim again.

import { deferred, orAborted } from "./abort.js";
import type { ServedUrls } from "./served_urls.js";

/** "This page answers these URLs in this scope." */
export interface Claim extends ServedUrls {
  readonly id: string;
  /** The scope of the service worker that asks the page. */
  readonly scope: string;
}

const PREFIX = "inpage-claim:";

/** A claim that is being held. */
export interface HeldClaim {
  /** Resolves when others can see the claim. */
  held: Promise<void>;
  /** Resolves when no page and no service worker can see it any more. */
  gone: Promise<void>;
}

/** Holds `claim` among `locks` until `released` aborts. */
export function holdClaim(claim: Claim, released: AbortSignal, locks: LockManager): HeldClaim {
  const held = deferred<void>();
  const hold = () => {
    held.resolve();
    return orAborted(new Promise<void>(() => {}), released).catch(() => {});
  };
  const gone = locks.request(PREFIX + JSON.stringify(claim), hold);
  gone.catch(held.reject);
  return { held: held.promise, gone: gone.then(() => {}) };
}

/** The claims of all open pages for the service worker with this scope, as far as they are among `locks`. */
export async function claimsIn(scope: string, locks = navigator.locks): Promise<Claim[]> {
  const { held = [] } = await locks.query();
  return held
    .filter(({ name }) => name?.startsWith(PREFIX))
    .map(({ name = "" }) => JSON.parse(name.slice(PREFIX.length)) as Claim)
    .filter((claim) => claim.scope === scope);
}
