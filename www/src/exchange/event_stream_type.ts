//! Distinguishes event streams from whole answers.

import type { HeaderList } from "./protocol.js";

/** True if the body is a stream of server-sent events. */
export function isEventStream(headers: HeaderList): boolean {
  return headers.some(
    ([name, value]) =>
      name.toLowerCase() === "content-type" && /^text\/event-stream\b/i.test(value),
  );
}
