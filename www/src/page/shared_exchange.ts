//! One exchange of a tab with the engine in another tab, over a broadcast channel of its own: ports cannot be sent to another
//! tab. When that tab is gone, the exchange goes on with the next one, or ends with an error.

import { EngineFailure, failureAnswer, failureEvents } from "../exchange/error_response.js";
import { isEventStream } from "../exchange/event_stream_type.js";
import type { RequesterMessage, ResponderMessage } from "../exchange/protocol.js";

/** The engine cancels an exchange whose requester is silent; four of these may be missed. */
const ALIVE_INTERVAL_MS = 2000;

/** The owner is frozen after this many silent intervals: its engine sends a message every three seconds. */
const MAX_SILENT_INTERVALS = 10;

/** The name of an exchange's channel. */
export const channelName = (exchange: string) => `inpage-exchange:${exchange}`;

/** The owner's first message: from now on the channel is listened to. */
export const OPENED = "opened";

type FromOwner = ResponderMessage | typeof OPENED;

/** Where the messages of an exchange go. */
interface Line {
  post(message: RequesterMessage): void;
  close(): void;
}

export class SharedExchange {
  readonly #port: MessagePort;
  readonly #onEnd: (exchange: SharedExchange) => void;
  #line: Line | undefined;
  /** The request, to be sent again to another engine; then what was sent while no engine listened. */
  #request: RequesterMessage | undefined;
  #head: Extract<ResponderMessage, { type: "head" }> | undefined;
  #midEvent = false;
  #silentIntervals = 0;
  readonly #timer: ReturnType<typeof setInterval>;

  /** @param onEnd called once, when the exchange is over */
  constructor(port: MessagePort, onEnd: (exchange: SharedExchange) => void) {
    this.#port = port;
    this.#onEnd = onEnd;
    port.onmessage = ({ data }: MessageEvent<RequesterMessage>) => this.#fromRequester(data);
    this.#timer = setInterval(() => this.#tick(), ALIVE_INTERVAL_MS);
  }

  /** Goes on with the engine of another tab, which was asked to listen to the channel of this name. */
  attachRemote(name: string): void {
    const channel = new BroadcastChannel(name);
    channel.onmessage = ({ data }: MessageEvent<FromOwner>) => {
      if (data === OPENED) this.#attach(line);
      else this.#fromEngine(data);
    };
    const line = {
      post: (message: RequesterMessage) => channel.postMessage(message),
      close: () => channel.close(),
    };
    this.#detach(line);
  }

  /** Goes on with the engine at the other end of `port`. */
  attachLocal(port: MessagePort): void {
    port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => this.#fromEngine(data);
    const line = {
      post: (message: RequesterMessage) => port.postMessage(message),
      close: () => port.close(),
    };
    this.#detach(line);
    this.#attach(line);
  }

  /** The engine is gone. False if the exchange is over, because its answer had begun; else it waits for another engine. */
  engineLost(): boolean {
    this.#detach(undefined);
    if (this.#head === undefined) return true;
    this.#fail(new EngineFailure("engine_unavailable", "the tab that ran the engine was closed"));
    return false;
  }

  /** Ends an exchange whose answer has not begun. */
  refuse(why: string): void {
    this.#fail(new EngineFailure("engine_unavailable", why));
  }

  /** A line that is not attached yet: its other end does not listen. */
  #pending: Line | undefined;

  #detach(next: Line | undefined): void {
    this.#line?.close();
    this.#pending?.close();
    this.#line = undefined;
    this.#pending = next;
    this.#silentIntervals = 0;
  }

  #attach(line: Line): void {
    if (line !== this.#pending) return;
    this.#pending = undefined;
    this.#line = line;
    if (this.#request) line.post(this.#request);
  }

  #fromRequester(message: RequesterMessage): void {
    if (message.type === "request") {
      // Streams cannot be sent over a broadcast channel.
      this.#request = { ...message, transport: "chunks", heartbeat: true };
      this.#line?.post(this.#request);
      return;
    }
    this.#line?.post(message);
    if (message.type === "cancel") this.#end();
  }

  #fromEngine(message: ResponderMessage): void {
    this.#silentIntervals = 0;
    if (message.type === "head") this.#head = message;
    if (message.type === "chunk") this.#midEvent = !endsEvent(message.bytes);
    this.#port.postMessage(message);
    if (message.type === "end" || message.type === "error") this.#end();
  }

  #tick(): void {
    this.#line?.post({ type: "alive" });
    if (++this.#silentIntervals <= MAX_SILENT_INTERVALS) return;
    this.#fail(
      new EngineFailure("engine_unavailable", "the tab that runs the engine does not answer"),
    );
  }

  #fail(failure: EngineFailure): void {
    const post = (message: ResponderMessage) => this.#port.postMessage(message);
    const encode = (text: string) => new TextEncoder().encode(text);
    if (this.#head === undefined) {
      const { status, headers, body } = failureAnswer(failure);
      post({ type: "head", status, headers });
      post({ type: "chunk", bytes: encode(body) });
      post({ type: "end" });
    } else if (isEventStream(this.#head.headers)) {
      const bytes = encode((this.#midEvent ? "\n\n" : "") + failureEvents(failure));
      post({ type: "chunk", bytes });
      post({ type: "end" });
    } else {
      post({ type: "error", message: failure.message });
    }
    this.#line?.post({ type: "cancel" });
    this.#end();
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#detach(undefined);
    this.#port.onmessage = null;
    this.#port.close();
    this.#onEnd(this);
  }
}

/** In the owner's tab: connects the channel of an exchange with a port of the engine. */
export function openForOther(name: string, port: MessagePort): void {
  const channel = new BroadcastChannel(name);
  const close = () => {
    channel.close();
    port.close();
  };
  port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
    channel.postMessage(data);
    if (data.type === "end" || data.type === "error") close();
  };
  channel.onmessage = ({ data }: MessageEvent<RequesterMessage>) => {
    port.postMessage(data);
    if (data.type === "cancel") close();
  };
  channel.postMessage(OPENED);
}

/** Every event ends with an empty line. */
function endsEvent(bytes: Uint8Array): boolean {
  return bytes.at(-1) === 10 && bytes.at(-2) === 10;
}
