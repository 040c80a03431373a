//! Waiting for a signal, promises that can be abandoned, and promises with their handles outside.

/** The function that is called when a signal aborts. */
const callbacksOf = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `callback` once when `signal` aborts; not if it has aborted already. Returns a function that ends this.
 *
 * A signal gets one listener, however many requests wait for it: the loss of an engine ends all of them, and Node takes
 * more than ten listeners for a leak.
 */
export function onceAborted(signal: AbortSignal, callback: () => void): () => void {
  let callbacks = callbacksOf.get(signal);
  if (callbacks === undefined) {
    callbacks = new Set();
    callbacksOf.set(signal, callbacks);
  }
  const registered = callbacks;
  // A function of its own, because one callback may be registered twice.
  const entry = () => callback();
  const remove = () => {
    if (registered.delete(entry) && registered.size === 0) {
      signal.removeEventListener("abort", callAll);
    }
  };
  if (registered.size === 0) signal.addEventListener("abort", callAll, { once: true });
  registered.add(entry);
  return remove;
}

function callAll(this: AbortSignal): void {
  const callbacks = callbacksOf.get(this);
  callbacksOf.delete(this);
  for (const callback of callbacks ?? []) callback();
}

/**
 * Settles as `promise` does; if `signal` aborts first, rejects with `signal.reason`.
 *
 * The callback is removed when either happens, so a long-lived signal does not collect callbacks, as a
 * long-lived promise in `Promise.race` would.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) {
      promise.catch(() => {});
      onAbort();
      return;
    }
    promise.then(resolve, reject).finally(onceAborted(signal, onAbort));
  });
}

/** An `AbortError` whose cause is the reason that the caller gave. */
export function abortError(reason: unknown): DOMException {
  if (reason instanceof DOMException && reason.name === "AbortError") return reason;
  const error = new DOMException("The request was aborted.", "AbortError");
  Object.defineProperty(error, "cause", { value: reason, configurable: true });
  return error;
}

/** A promise, with the functions that settle it. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (reason: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (reason: unknown) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  // Without this, a failure that nobody awaits would be reported as an unhandled rejection.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
