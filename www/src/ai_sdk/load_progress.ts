//! A chat transport of the AI SDK whose streams tell the progress of the model's load.

import type { getEngine } from "../engine/get_engine.js";
import type { LoadProgress } from "../exchange/protocol.js";
import { type ProviderOptions, whileLoading } from "./engine_for.js";

/** The type of the parts. They are transient: `onData` of `useChat` gets them, and messages do not keep them. */
export const PART_TYPE = "data-model-load";

/** A part of a stream, while the model loads. */
export interface LoadProgressPart {
  type: typeof PART_TYPE;
  id: string;
  data: LoadProgress;
  transient: true;
}

/** The parts of a transport and its requests that are used here. */
interface Request {
  abortSignal?: AbortSignal | undefined;
}
interface Transport {
  sendMessages(request: Request): Promise<ReadableStream<unknown>>;
}

/** `transport`, with parts about the load beside those of the answer. */
export function withLoadProgress<T extends object>(
  get: typeof getEngine,
  options: ProviderOptions,
  transport: T,
): T {
  const inner = transport as unknown as Transport;
  const sendMessages = async (request: Request) => {
    const { readable, writable } = new TransformStream<unknown>();
    const send = (stopped: AbortSignal) => {
      const { abortSignal } = request;
      const either = abortSignal ? AbortSignal.any([abortSignal, stopped]) : stopped;
      return inner.sendMessages({ ...request, abortSignal: either });
    };
    void relay(get, options, send, writable);
    return readable;
  };
  return new Proxy(transport, {
    get(target, name) {
      if (name === "sendMessages") return sendMessages;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/**
 * Writes the answer, and the progress of the load beside it: its first parts may come before the model is loaded. The signal of
 * `send` aborts when the reader stops.
 */
async function relay(
  get: typeof getEngine,
  options: ProviderOptions,
  send: (stopped: AbortSignal) => Promise<ReadableStream<unknown>>,
  to: WritableStream<unknown>,
): Promise<void> {
  const answered = new AbortController();
  const writer = to.getWriter();
  let loads = false;
  const report = (data: LoadProgress) => {
    // The only report about a model that is loaded already.
    loads ||= data.phase !== "ready";
    if (!loads || answered.signal.aborted) return;
    const part: LoadProgressPart = {
      ...{ type: PART_TYPE, id: "model-load", data, transient: true },
    };
    // An error means that the reader has stopped.
    writer.write(part).catch(() => {});
  };
  // The answer has the error of a load that fails.
  whileLoading(get, options, report, answered.signal).catch(() => {});
  // The SDK tees the answer, so cancelling the stream of the transport does not end it.
  const stopped = new AbortController();
  writer.closed.catch((reason) => stopped.abort(reason));
  try {
    const reader = (await send(stopped.signal)).getReader();
    // A transport may ignore the signal.
    writer.closed.catch((reason) => reader.cancel(reason));
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      await writer.write(value);
    }
    await writer.close();
  } catch (error) {
    await writer.abort(error).catch(() => {});
  } finally {
    answered.abort();
  }
}
