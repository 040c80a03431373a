//! Time and random numbers for downloads. Tests replace them.

export interface Clock {
  /** Milliseconds since 1970. */
  nowMs(): number;
  /** @throws the signal's reason when it aborts */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** A random number of at least 0 and less than 1. */
  random(): number;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason);
        return;
      }
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      }, ms);
      signal.addEventListener("abort", onAbort, { once: true });
    }),
};
