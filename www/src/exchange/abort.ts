//! Waiting that can be given up. Knows nothing of what is waited for.

/**
 * `promise`, unless `signal` aborts first: then rejects with `signal.reason`.
 *
 * The listener goes when either settles, so a signal that outlives a million waits holds none of
 * them (`Promise.race` with a long-lived promise would).
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

/** An `AbortError`, keeping what the caller gave as the reason. */
export function abortError(reason: unknown): DOMException {
  if (reason instanceof DOMException && reason.name === "AbortError") return reason;
  const error = new DOMException("The request was aborted.", "AbortError");
  Object.defineProperty(error, "cause", { value: reason, configurable: true });
  return error;
}

/** A promise with its handles outside. */
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
  // Whoever awaits it sees the failure; nobody awaiting is no unhandled rejection.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
