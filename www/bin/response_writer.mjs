//! Writes answers to connections that may not take them: within a time, and to clients that are still sending. What is
//! answered is decided elsewhere.

/** Bytes that a connection has to take within the time-out. */
const SLICE_BYTES = 64 * 1024;

/** The time that a refused body is read on, in ms. */
const LINGER_MS = 10_000;

export class ResponseWriter {
  #response;
  #timeoutMs;

  constructor(response, timeoutMs) {
    this.#response = response;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws Error if the connection is gone, or does not take the bytes in time */
  async write(bytes) {
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      if (!this.#response.write(bytes.subarray(at, at + SLICE_BYTES))) await this.#taken("drain");
    }
  }

  /** @throws as `write` */
  async end() {
    const taken = this.#taken("finish");
    this.#response.end();
    await taken;
  }

  /**
   * Ends an answer whose size is in its head, and the connection with it, when the client has sent its body or some time is
   * over. Most clients read only then, and a connection that is closed with unread bytes loses the answer.
   */
  async endAfterBody(request) {
    if (!request.complete && !request.destroyed) {
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, LINGER_MS);
        request.once("close", () => clearTimeout(timer));
        for (const event of ["end", "close", "error"]) request.once(event, resolve);
        request.resume();
      });
    }
    await this.end();
  }

  #taken(event) {
    const response = this.#response;
    return new Promise((resolve, reject) => {
      const gone = () => settle(reject, new Error("the client is gone"));
      const taken = () => settle(resolve);
      const late = () => settle(reject, new Error("the client does not read the answer"));
      const timer = setTimeout(late, this.#timeoutMs);
      const settle = (how, value) => {
        clearTimeout(timer);
        response.off(event, taken).off("close", gone);
        how(value);
      };
      if (response.destroyed) gone();
      else response.once(event, taken).once("close", gone);
    });
  }
}
