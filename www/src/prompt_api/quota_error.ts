//! The error for a prompt that exceeds the context: the platform's class where it has one.

/** The properties of the platform's class. */
interface Quota {
  requested: number;
  quota: number;
}

type QuotaExceeded = new (message: string, options: Quota) => DOMException;

/** A `QuotaExceededError`. */
export function quotaExceeded(message: string, quota: Quota): DOMException {
  const platform = (globalThis as { QuotaExceededError?: QuotaExceeded }).QuotaExceededError;
  if (platform !== undefined) return new platform(message, quota);
  return Object.assign(new DOMException(message, "QuotaExceededError"), quota);
}
