//! One exchange of this tab with the engine of another tab, over a broadcast channel of its own, because ports cannot be
//! sent to another tab. When that tab is lost, the requester gets a message, and asks the next engine to continue.

import type { EngineFailure } from "../exchange/error_response.js";
import type { RequesterMessage, ResponderMessage, WireFailure } from "../exchange/protocol.js";

/** The engine cancels an exchange whose requester is silent; four of these may be missed. */
const ALIVE_INTERVAL_MS = 2000;

/**
 * The other tab is frozen after this many silent intervals: its engine sends a message every three seconds, and its page an answer to
 * every question. A page that is not frozen notices itself that its engine hangs.
 */
const MAX_SILENT_INTERVALS = 10;

/** The first message of the other tab: it listens from now on. */
const OPENED = "opened";

/** A question to the other tab's page, and its answer. */
const ASK = "ask";
const HERE = "here";

/** A message from the tab that runs the engine. */
type FromOwner = ResponderMessage | typeof OPENED | typeof HERE;

const channelOf = (exchange: string) => new BroadcastChannel(`inpage-exchange:${exchange}`);

/** Ends when the answer is complete or cancelled, or with `lose`. */
export class SharedExchange {
  readonly #port: MessagePort;
  readonly #onEnd: (exchange: SharedExchange) => void;
  readonly #timer: ReturnType<typeof setInterval>;
  #request: RequesterMessage | undefined;
  #channel: BroadcastChannel | undefined;
  /** True if the other tab listens. */
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
    this.#channel.onmessage = ({ data }: MessageEvent<FromOwner>) => {
      if (data === OPENED) {
        this.#isOpen = true;
        if (this.#request) this.#channel?.postMessage(this.#request);
      } else if (data === HERE) this.#silentIntervals = 0;
      else this.#fromEngine(data);
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
    if (this.#isOpen) {
      this.#sendAlive();
      this.#channel?.postMessage(ASK);
    }
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

/** Called in the tab that runs the engine: connects the channel of an exchange with a port of the engine. `lost` aborts with the engine. */
export function openForOther(
  exchange: string,
  port: MessagePort,
  lost: Promise<AbortSignal>,
): void {
  const channel = channelOf(exchange);
  const ended = new AbortController();
  const close = () => {
    ended.abort();
    channel.close();
    port.close();
  };
  /** A worker that hangs or has ended could not say so itself. */
  const lose = ({ code, message }: EngineFailure) => {
    if (ended.signal.aborted) return;
    channel.postMessage({ type: "lost", failure: { code, message } } satisfies ResponderMessage);
    close();
  };
  void lost.then((signal) => {
    if (signal.aborted) lose(signal.reason);
    signal.addEventListener("abort", () => lose(signal.reason), { signal: ended.signal });
  });
  port.onmessage = ({ data }: MessageEvent<ResponderMessage>) => {
    channel.postMessage(data);
    if (isLast(data)) close();
  };
  channel.onmessage = ({ data }: MessageEvent<RequesterMessage | typeof ASK>) => {
    if (data === ASK) {
      channel.postMessage(HERE);
      return;
    }
    port.postMessage(data);
    if (data.type === "cancel") close();
  };
  channel.postMessage(OPENED);
}

const isLast = ({ type }: ResponderMessage) =>
  type === "end" || type === "error" || type === "lost";
