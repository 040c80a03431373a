//! Reads bodies of requests within a budget that all of them share. Which requests have their body read is decided before.

/**
 * The first bytes of each body are not counted, so that bodies of this size are accepted while others use up the budget.
 * The number of connections bounds them: each reads one body at a time.
 */
export const UNCOUNTED_BYTES = 64 * 1024;

const FIRST_BYTES = 4096;

/** A body that is not accepted. `reason` is "too_large" (it exceeds the limit of one body) or "busy" (no room at the moment). */
export class BodyRefused extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/** Bytes that bodies in flight may take together. */
export class BodyBudget {
  #freeBytes;

  constructor(bytes) {
    this.#freeBytes = bytes;
  }

  /** False if there is no room for so many bytes. */
  take(bytes) {
    if (bytes > this.#freeBytes) return false;
    this.#freeBytes -= bytes;
    return true;
  }

  give(bytes) {
    this.#freeBytes += bytes;
  }
}

/** The body of one request. It counts as in flight until `release`. */
export class RequestBody {
  #budget;
  #takenBytes = 0;
  #bytes = Buffer.alloc(0);
  #usedBytes = 0;

  constructor(budget) {
    this.#budget = budget;
  }

  /**
   * Reads the body to its end; `maxBytes` and, if it is known, `expectedBytes` are at least its size. Memory is taken as the
   * bytes arrive, because a client may announce many bytes and send few.
   *
   * @throws BodyRefused if it is longer than `maxBytes`, or the budget has no room for it
   * @throws Error if the client leaves
   */
  async read(request, maxBytes, expectedBytes = maxBytes) {
    for await (const piece of request.iterator({ destroyOnReturn: false })) {
      const bytes = this.#usedBytes + piece.length;
      if (bytes > maxBytes) throw new BodyRefused("too_large");
      if (bytes > this.#bytes.length) this.#grow(bytes, Math.max(expectedBytes, bytes));
      piece.copy(this.#bytes, this.#usedBytes);
      this.#usedBytes = bytes;
    }
    return this.#bytes.subarray(0, this.#usedBytes);
  }

  /** Doubles the room until `bytes` fit, but to `mostBytes` at most. */
  #grow(bytes, mostBytes) {
    let room = Math.max(this.#bytes.length, FIRST_BYTES);
    while (room < bytes) room *= 2;
    room = Math.min(room, mostBytes);
    const more = Math.max(room - UNCOUNTED_BYTES, 0) - this.#takenBytes;
    if (!this.#budget.take(more)) throw new BodyRefused("busy");
    this.#takenBytes += more;
    const grown = Buffer.allocUnsafeSlow(room);
    this.#bytes.copy(grown, 0, 0, this.#usedBytes);
    this.#bytes = grown;
  }

  /** Gives the memory back. */
  release() {
    this.#bytes = Buffer.alloc(0);
    this.#budget.give(this.#takenBytes);
    this.#takenBytes = 0;
  }
}
