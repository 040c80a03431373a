//! One engine for all tabs of the site that ask for the same one: the tab that holds a lock runs it, and the others send
//! their exchanges and calls there. When that tab ends, the next one starts the engine.

import { type Deferred, deferred } from "../exchange/abort.js";
import type { EngineInfo } from "../exchange/engine_info.js";
import { messageOf } from "../exchange/error_response.js";
import type { LoraLocation, WireFailure } from "../exchange/protocol.js";
import { InpageError } from "./inpage_error.js";
import { SharedExchange, channelName, openForOther } from "./shared_exchange.js";

/** The engine as the tab that owns it runs it. */
export interface OwnEngine {
  readonly ready: Promise<void>;
  connect(port: MessagePort): void;
  info(): Promise<EngineInfo>;
  setLoraLocations(lora: LoraLocation[]): Promise<void>;
  reload(): Promise<void>;
  dispose(): Promise<void>;
}

/** What a tab may ask of the owner, besides exchanges. */
type Call =
  | { method: "ready" }
  | { method: "info" }
  | { method: "reload" }
  | { method: "setLora"; lora: LoraLocation[] };

/** On the channel of all tabs that share an engine. */
type Message =
  /** I own the engine from now on, or still do. */
  | { type: "owner"; owner: string }
  /** Who owns the engine? */
  | { type: "who" }
  /** Listen to the channel of this exchange. */
  | { type: "open"; owner: string; exchange: string }
  | { type: "call"; owner: string; id: string; call: Call }
  | { type: "result"; id: string; value?: unknown; failure?: WireFailure };

interface OpenCall {
  call: Call;
  result: Deferred<unknown>;
}

export class SharedHost {
  readonly #key: string;
  readonly #start: () => OwnEngine;
  readonly #id = crypto.randomUUID();
  readonly #channel: BroadcastChannel;
  readonly #left = new AbortController();
  readonly #exchanges = new Set<SharedExchange>();
  readonly #calls = new Map<string, OpenCall>();
  /** Ends the ownership, or the wait for it. */
  #tenure = new AbortController();
  #owner: string | undefined;
  #own: OwnEngine | undefined;

  /** @param start starts the engine, in the tab that owns it */
  constructor(key: string, start: () => OwnEngine) {
    this.#key = key;
    this.#start = start;
    this.#channel = new BroadcastChannel(`inpage-engine:${key}`);
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => this.#take(data);
    const { signal } = this.#left;
    // The engine of a page that is put aside answers nobody, and would keep the GPU memory of a second one.
    const leave = () => this.#endTenure();
    const onPageHide = ({ persisted }: PageTransitionEvent) => {
      if (persisted) leave();
    };
    const join = () => {
      if (this.#tenure.signal.aborted) this.#join();
    };
    addEventListener("pagehide", onPageHide, { signal });
    addEventListener("pageshow", join, { signal });
    document.addEventListener("freeze", leave, { signal });
    document.addEventListener("resume", join, { signal });
    this.#join();
  }

  /** True if this tab runs the engine. */
  get isOwner(): boolean {
    return this.#own !== undefined;
  }

  get openExchanges(): number {
    return this.#exchanges.size;
  }

  /** Resolves when the engine's model is loaded, in whichever tab. */
  async ready(): Promise<void> {
    await this.#call({ method: "ready" });
  }

  async info(): Promise<EngineInfo> {
    return (await this.#call({ method: "info" })) as EngineInfo;
  }

  async setLora(lora: LoraLocation[]): Promise<void> {
    await this.#call({ method: "setLora", lora });
  }

  async reload(): Promise<void> {
    await this.#call({ method: "reload" });
  }

  connect(port: MessagePort): void {
    const exchange = new SharedExchange(port, (ended) => this.#exchanges.delete(ended));
    this.#exchanges.add(exchange);
    this.#attach(exchange);
  }

  /** This tab no longer uses the engine; if it owns it, another tab that does starts its own. */
  async dispose(): Promise<void> {
    this.#left.abort();
    for (const exchange of [...this.#exchanges]) {
      if (exchange.engineLost()) exchange.refuse("the engine was disposed");
    }
    const ended = new DOMException("the engine was disposed", "AbortError");
    for (const { result } of this.#calls.values()) result.reject(ended);
    this.#calls.clear();
    await this.#endTenure();
    this.#channel.close();
  }

  /** Waits in line for the engine. */
  #join(): void {
    const tenure = new AbortController();
    this.#tenure = tenure;
    const { signal } = tenure;
    const own = async () => {
      this.#own = this.#start();
      this.#newOwner(this.#id);
      this.#post({ type: "owner", owner: this.#id });
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    };
    navigator.locks.request(`inpage-engine:${this.#key}`, { signal }, own).catch(() => {});
    this.#post({ type: "who" });
  }

  async #endTenure(): Promise<void> {
    this.#tenure.abort();
    const own = this.#own;
    this.#own = undefined;
    if (own === undefined) return;
    this.#newOwner(undefined);
    await own.dispose();
  }

  #take(message: Message): void {
    switch (message.type) {
      case "owner":
        this.#newOwner(message.owner);
        break;
      case "who":
        if (this.#own) this.#post({ type: "owner", owner: this.#id });
        break;
      case "open":
        if (this.#own && message.owner === this.#id) {
          openForOther(channelName(message.exchange), this.#openPort(this.#own));
        }
        break;
      case "call":
        if (this.#own && message.owner === this.#id) void this.#answer(message.id, message.call);
        break;
      case "result":
        this.#settle(message.id, message.value, message.failure);
        break;
    }
  }

  #newOwner(owner: string | undefined): void {
    if (owner === this.#owner) return;
    const hadOwner = this.#owner !== undefined;
    this.#owner = owner;
    for (const exchange of [...this.#exchanges]) {
      const goesOn = hadOwner ? exchange.engineLost() : true;
      if (goesOn) this.#attach(exchange);
    }
    for (const [id, { call }] of this.#calls) this.#ask(id, call);
  }

  /** Without an owner, the exchange waits for one. */
  #attach(exchange: SharedExchange): void {
    if (this.#own) {
      exchange.attachLocal(this.#openPort(this.#own));
    } else if (this.#owner !== undefined) {
      const id = crypto.randomUUID();
      exchange.attachRemote(channelName(id));
      this.#post({ type: "open", owner: this.#owner, exchange: id });
    }
  }

  #openPort(own: OwnEngine): MessagePort {
    const { port1, port2 } = new MessageChannel();
    own.connect(port2);
    return port1;
  }

  #call(call: Call): Promise<unknown> {
    const id = crypto.randomUUID();
    const result = deferred<unknown>();
    this.#calls.set(id, { call, result });
    this.#ask(id, call);
    return result.promise;
  }

  #ask(id: string, call: Call): void {
    if (this.#own) void this.#answer(id, call);
    else if (this.#owner !== undefined) {
      this.#post({ type: "call", owner: this.#owner, id, call });
    }
  }

  /** As the owner: makes a call of this or another tab. */
  async #answer(id: string, call: Call): Promise<void> {
    const own = this.#own;
    if (own === undefined) return;
    let value: unknown;
    let failure: WireFailure | undefined;
    try {
      if (call.method === "ready") await own.ready;
      else if (call.method === "info") value = await own.info();
      else if (call.method === "reload") await own.reload();
      else await own.setLoraLocations(call.lora);
    } catch (error) {
      // The engine was disposed because this tab no longer owns it: the next owner answers.
      if (own !== this.#own) return;
      const code = error instanceof InpageError ? error.code : undefined;
      failure = { code: code ?? "internal_error", message: messageOf(error) };
    }
    if (this.#calls.has(id)) this.#settle(id, value, failure);
    else this.#post({ type: "result", id, value, ...(failure && { failure }) });
  }

  #settle(id: string, value: unknown, failure: WireFailure | undefined): void {
    const open = this.#calls.get(id);
    this.#calls.delete(id);
    if (failure) open?.result.reject(InpageError.local(failure.code, failure.message));
    else open?.result.resolve(value);
  }

  #post(message: Message): void {
    this.#channel.postMessage(message);
  }
}
