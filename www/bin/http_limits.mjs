//! The limits of clients of `inpage serve`: connections, bytes and time. The options of the command that set it are in `serve.mjs`,
//! what a request may contain is the endpoint's.

/** The largest body that the endpoint accepts if no switch says otherwise. */
const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** The limits if no option says otherwise. */
export const DEFAULT_LIMITS = {
  /** Open connections. Further ones are closed. */
  maxConnections: 512,
  /** The time from the connection, or from the first byte of a later request, to the end of the headers. */
  headerTimeoutMs: 15_000,
  /** The time from the same moment to the end of the body. */
  bodyTimeoutMs: 60_000,
  /** The time that bytes of an answer may wait until the connection has taken them, at most 64 KiB at a time. */
  writeTimeoutMs: 30_000,
  /** Bytes of one body. */
  maxBodyBytes: MAX_BODY_BYTES,
};

/** Bodies of this size that are held at once, if no option says otherwise. */
const BUDGET_BODIES = 2;

/**
 * `given` with the defaults in place of what is missing or undefined. `bodyBudgetBytes` are those of all bodies, beyond the
 * first `UNCOUNTED_BYTES` of each.
 */
export function limitsOf(given) {
  const limits = { ...DEFAULT_LIMITS };
  for (const [name, value] of Object.entries(given)) if (value !== undefined) limits[name] = value;
  return { bodyBudgetBytes: BUDGET_BODIES * limits.maxBodyBytes, ...limits };
}
