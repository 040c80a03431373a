//! Promises that can be abandoned, and promises with their handles outside.

/**
 * Settles as `promise` does; if `signal` aborts first, rejects with `signal.reason`.
 *
 * The listener is removed when either happens, so a long-lived signal does not collect listeners, as a
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
    signal.addEventListener("abort", onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
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
