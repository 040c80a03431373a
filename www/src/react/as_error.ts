//! Converts a thrown value to an error.

export const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(`${reason}`);
