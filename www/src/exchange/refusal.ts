//! Answers an exchange in the page itself, with an error, where no engine worker can.

import { type EngineFailure, failureAnswer } from "./error_response.js";
import type { RequesterMessage, ResponderMessage } from "./protocol.js";

/** Answers the request that comes over `port` with `failure`. */
export function refuse(port: MessagePort, failure: EngineFailure): void {
  const post = (message: ResponderMessage) => port.postMessage(message);
  port.onmessage = ({ data }: MessageEvent<RequesterMessage>) => {
    if (data.type === "request") {
      const { status, headers, body } = failureAnswer(failure, data.request.url);
      post({ type: "head", status, headers });
      post({ type: "chunk", bytes: new TextEncoder().encode(body) });
      post({ type: "end" });
    }
    // Anything else comes after the answer, or from a requester that is gone.
    if (data.type !== "alive") port.close();
  };
}
