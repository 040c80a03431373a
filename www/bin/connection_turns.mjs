//! Answers the requests of a connection one after another. HTTP lets clients send further ones before they have the answer,
//! and Node would begin all of them at once.

/** Requests that a connection may have sent ahead. Clients that send more are closed. */
const MAX_AHEAD = 8;

export class ConnectionTurns {
  /** The requests of each connection that are not answered, and the end of its last one. */
  #lines = new WeakMap();

  /** Calls `answer` when the answers before are written. A connection whose answer fails is closed. */
  take(request, response, answer) {
    const { socket } = request;
    const line = this.#lines.get(socket) ?? { waiting: 0, last: Promise.resolve() };
    this.#lines.set(socket, line);
    line.waiting += 1;
    if (line.waiting > MAX_AHEAD + 1) {
      socket.destroy();
      return;
    }
    line.last = line.last.then(async () => {
      // The answer before has closed the connection.
      if (socket.destroyed || response.socket !== socket) return;
      const closed = new Promise((resolve) => response.once("close", resolve));
      try {
        await answer();
      } catch {
        // The client is gone, or the answer broke off after its head. The client must not take it for a whole answer.
        response.destroy();
      }
      await closed;
      line.waiting -= 1;
    });
  }
}
