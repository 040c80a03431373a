//! One exchange of this tab with the engine of another tab, over a broadcast channel of its own, because ports cannot be
//! sent to another tab. When that tab is lost, the requester is told, and asks the next engine to continue.

import type { RequesterMessage, ResponderMessage, WireFailure } from "../exchange/protocol.js";

/** The engine cancels an exchange whose requester is silent; four of these may be missed. */
const ALIVE_INTERVAL_MS = 2000;

/** The other tab is frozen after this many silent intervals: its engine sends a message every three seconds. */
const MAX_SILENT_INTERVALS = 10;

/** The first message of the other tab: it listens from now on. */
const OPENED = "opened";

const channelOf = (exchange: string) => new BroadcastChannel(`inpage-exchange:${exchange}`);

/** Ends when the answer is complete or cancelled, or with `lose`. */
export class SharedExchange {
  readonly #port: MessagePort;
  readonly #onEnd: (exchange: SharedExchange) => void;
  readonly #timer: ReturnType<typeof setInterval>;
  #request: RequesterMessage | undefined;
  #channel: BroadcastChannel | undefined;
  /** The other tab listens. */
  #isOpen = false;
  #silentIntervals = 0;

  /** `port` leads to the requester. `onEnd` is called once. */
  constructor(port: MessagePort, onEnd: (exchange: SharedExchange) => void) {
    this.#port = port;
    this.#onEnd = onEnd;
    port.onmessage = ({ data }: MessageEvent<RequesterMessage>) => this.#fromRequester(data);
    this.#timer = setInterval(() => this.#tick(), ALIVE_INTERVAL_MS);
  }

  /** Prepares the channel of this name, which the other tab is then asked to open. */
  attach(exchange: string): void {
    this.#channel = channelOf(exchange);
    this.#silentIntervals = 0;
    this.#channel.onmessage = ({ data }: MessageEvent<ResponderMessage | typeof OPENED>) => {
      if (data !== OPENED) {
        this.#fromEngine(data);
        return;
      }
      this.#isOpen = true;
      if (this.#request) this.#channel?.postMessage(this.#request);
    };
  }

  get isAttached(): boolean {
    return this.#channel !== undefined;
  }

  /** Tells the requester that the engine is lost. */
  lose(failure: WireFailure): void {
    this.#channel?.postMessage({ type: "cancel" } satisfies RequesterMessage);
    this.#fromEngine({ type: "lost", failure });
  }

  #fromRequester(message: RequesterMessage): void {
    // Streams cannot be sent over a broadcast channel.
    const sent: RequesterMessage =
      message.type === "request" ? { ...message, transport: "chunks", heartbeat: true } : message;
    if (sent.type === "request") this.#request = sent;
    if (this.#isOpen) this.#channel?.postMessage(sent);
    if (sent.type === "cancel") this.#end();
  }

  #fromEngine(message: ResponderMessage): void {
    this.#silentIntervals = 0;
    // The timers of hidden tabs are slowed down; the engine's are not, and would count this one as gone.
    if (message.type === "alive" && this.#isOpen) this.#sendAlive();
    this.#port.postMessage(message);
    if (isLast(message)) this.#end();
  }

  #tick(): void {
    if (!this.isAttached) return;
    if (this.#isOpen) this.#sendAlive();
    if (++this.#silentIntervals <= MAX_SILENT_INTERVALS) return;
    this.lose({
      code: "engine_unavailable",
      message: "the tab that runs the engine does not answer; the browser may have frozen it",
    });
  }

  #sendAlive(): void {
    this.#channel?.postMessage({ type: "alive" } satisfies RequesterMessage);
  }

  #end(): void {
    clearInterval(this.#timer);
    this.#channel?.close();
    this.#port.onmessage = null;
    this.#port.close();
    this.#onEnd(this);
  }
}

/** In the tab that runs the engine: connects the channel of an exchange with a port of the engine. */
export function openForOther(exchange: string, port: MessagePort): void {
  const channel = channelOf(exchange);
  const close = () => {
    channel.close();
    port.close();
  };
  port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
    channel.postMessage(data);
    if (isLast(data)) close();
  };
  channel.onmessage = ({ data }: MessageEvent<RequesterMessage>) => {
    port.postMessage(data);
    if (data.type === "cancel") close();
  };
  channel.postMessage(OPENED);
}

const isLast = ({ type }: ResponderMessage) =>
  type === "end" || type === "error" || type === "lost";
