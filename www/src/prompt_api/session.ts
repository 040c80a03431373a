//! A session of the Prompt API: a conversation that the engine's chat answers, within the model's context.

import { orAborted } from "../exchange/abort.js";
import type { ChatRequestMessage } from "../api/chat.js";
import type { AssistantMessage } from "../api/growing_message.js";
import { turn } from "../api/turn.js";
import type { Engine } from "../engine/engine.js";
import { constraintFields, orNotSupported } from "./constraint.js";
import { measure } from "./measure.js";
import { type PromptInput, type ReadPrompt, readPrompt } from "./prompts.js";
import { quotaExceeded } from "./quota_error.js";
import type { Sampling, SamplingMode } from "./sampling_mode.js";
import { type LanguageModelTool, resultOf, toolFields } from "./tools.js";

/** Options of a prompt. */
export interface PromptOptions {
  signal?: AbortSignal;
  /** A JSON schema, or a regular expression that the whole answer matches (its flags do not count). */
  responseConstraint?: object;
  /** No effect: a schema is never added to the prompt. */
  omitResponseConstraintInput?: boolean;
}

/** The state that a session starts with. */
export interface SessionStart {
  engine: Engine;
  /** The messages that are never left out. */
  initial: readonly ChatRequestMessage[];
  /** The messages after the initial ones. The oldest are left out when the context is full. */
  later: readonly ChatRequestMessage[];
  /** The settings of requests. */
  sampling: Sampling;
  samplingMode: SamplingMode | null;
  tools: readonly LanguageModelTool[];
  takesImages: boolean;
  contextUsage: number;
  contextWindow: number;
}

/** The maximum number of answers to one prompt, of which all but the last may call tools. */
const MAX_ANSWERS = 16;

/**
 * A conversation. Prompts are answered one after the other. `contextoverflow` is dispatched when its oldest messages are left out.
 * The members with `input` and `quota` in their names are older names of other members.
 */
export class LanguageModelSession extends EventTarget {
  /** The mode; null if the session has settings of its own. */
  readonly samplingMode: SamplingMode | null;
  /** The most tokens that the conversation and its answers can have. */
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => void) | null = null;
  onquotaoverflow: ((event: Event) => void) | null = null;
  readonly #start: SessionStart;
  #later: readonly ChatRequestMessage[];
  #contextUsage: number;
  readonly #ended = new AbortController();
  /** Settles when the last prompt so far is answered. */
  #last: Promise<unknown> = Promise.resolve();

  /** Use `LanguageModel.create`. The session is destroyed when the signal aborts. */
  constructor(start: SessionStart, signal?: AbortSignal) {
    super();
    this.samplingMode = start.samplingMode;
    this.contextWindow = start.contextWindow;
    this.#start = start;
    this.#later = start.later;
    this.#contextUsage = start.contextUsage;
    signal?.addEventListener("abort", () => this.#ended.abort(signal.reason), { once: true });
  }

  /** The temperature, if the session has settings of its own. */
  get temperature(): number | undefined {
    return this.samplingMode === null ? this.#start.sampling.temperature : undefined;
  }

  /** The number of most likely tokens that are kept, if the session has settings of its own. */
  get topK(): number | undefined {
    return this.samplingMode === null ? this.#start.sampling.topK : undefined;
  }

  /** The tokens of the conversation so far. */
  get contextUsage(): number {
    return this.#contextUsage;
  }

  get inputUsage(): number {
    return this.#contextUsage;
  }

  get inputQuota(): number {
    return this.contextWindow;
  }

  /**
   * The answer to a prompt, which both become a part of the conversation.
   *
   * @throws TypeError and DOMException for prompts that are none (`readPrompt`)
   * @throws DOMException named `QuotaExceededError` if the prompt does not fit the context, `NotSupportedError` for a constraint that
   * cannot be met, `InvalidStateError` for an image that cannot be decoded and after `destroy()`
   * @throws the reason of a signal that aborts
   * @throws InpageError for every other error answer of the endpoint
   */
  async prompt(input: PromptInput, options: PromptOptions = {}): Promise<string> {
    let text = "";
    for await (const piece of this.#answer(this.#read(input), options)) text += piece;
    return text;
  }

  /** Asks like `prompt` and returns pieces of the answer. An aborted signal is thrown at once. */
  promptStreaming(input: PromptInput, options: PromptOptions = {}): ReadableStream<string> {
    this.#throwIfEnded(options.signal);
    const stopped = new AbortController();
    const signals = [stopped.signal, ...(options.signal ? [options.signal] : [])];
    const pieces = this.#answer(this.#read(input), { ...options, signal: anyOf(signals) });
    // The prompt takes its turn now, not when the stream is read.
    let next = pieces.next();
    next.catch(() => {});
    return new ReadableStream<string>({
      async pull(controller) {
        const { done, value } = await next;
        if (done) return controller.close();
        controller.enqueue(value);
        next = pieces.next();
        next.catch(() => {});
      },
      async cancel() {
        stopped.abort();
        // A generation that waits for its reader ends here, and the next prompt can begin.
        await pieces.return().catch(() => {});
      },
    });
  }

  /** Adds messages to the conversation without an answer. */
  async append(
    input: PromptInput,
    { signal: given }: { signal?: AbortSignal } = {},
  ): Promise<void> {
    const read = this.#read(input);
    if (read.continues) {
      throw new DOMException("prefix is for prompts: nothing is answered here", "SyntaxError");
    }
    const { signal, free } = await this.#turn(given);
    try {
      const messages = await this.#following(read);
      await this.#keep([...(await this.#makeRoom(messages, false, signal)), ...messages], signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      free();
    }
  }

  /** The tokens of a prompt by itself: what its messages add to a conversation. */
  async measureContextUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    const { signal: given, responseConstraint, omitResponseConstraintInput = false } = options;
    this.#throwIfEnded(given);
    const signal = this.#ending(given);
    if (omitResponseConstraintInput && responseConstraint === undefined) {
      throw new TypeError("omitResponseConstraintInput is for a responseConstraint");
    }
    const { messages } = this.#read(input);
    const measuring = messages.then((read) => this.#measure(read, false, signal));
    return orAborted(measuring, signal);
  }

  measureInputUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    return this.measureContextUsage(input, options);
  }

  /** A session that continues the same conversation on its own. */
  async clone({ signal }: { signal?: AbortSignal } = {}): Promise<this> {
    this.#throwIfEnded(signal);
    const { contextUsage } = this;
    const start = { ...this.#start, later: this.#later, contextUsage };
    // A signal may abort after the call.
    await Promise.resolve();
    this.#throwIfEnded(signal);
    return new (this.constructor as new (start: SessionStart) => this)(start);
  }

  /** Ends the conversation and stops its answers. The engine stays. */
  destroy(): void {
    this.#ended.abort(new DOMException("the session was destroyed", "InvalidStateError"));
  }

  #throwIfEnded(given: AbortSignal | undefined): void {
    this.#ended.signal.throwIfAborted();
    given?.throwIfAborted();
  }

  /** Aborts with the session, or when the given signal does. */
  #ending(given: AbortSignal | undefined): AbortSignal {
    return anyOf([this.#ended.signal, ...(given ? [given] : [])]);
  }

  #read(input: PromptInput): ReadPrompt {
    return readPrompt(input, this.#start.takesImages);
  }

  /** Messages that follow the conversation. @throws TypeError for a system message that does not begin it */
  async #following(read: ReadPrompt): Promise<ChatRequestMessage[]> {
    const messages = await read.messages;
    const isFirst = this.#start.initial.length === 0 && this.#later.length === 0;
    if (messages[0]?.role === "system" && !isFirst) {
      throw new TypeError("a system message is the first one of a conversation");
    }
    return messages;
  }

  /** Waits until what was asked before is done. `free` must be called. */
  async #turn(given: AbortSignal | undefined): Promise<{ signal: AbortSignal; free: () => void }> {
    this.#throwIfEnded(given);
    const signal = this.#ending(given);
    const before = this.#last;
    let free = () => {};
    const turn = new Promise<void>((resolve) => {
      free = resolve;
    });
    this.#last = before.then(() => turn);
    try {
      await orAborted(before, signal);
    } catch (error) {
      free();
      throw error;
    }
    return { signal, free };
  }

  async *#answer(
    read: ReadPrompt,
    { signal: given, responseConstraint }: PromptOptions,
  ): AsyncGenerator<string, void> {
    const { signal, free } = await this.#turn(given);
    try {
      const constraint = constraintFields(responseConstraint);
      const { continues } = read;
      const messages = await this.#following(read);
      const added = messages.length > 0 ? messages : [{ role: "user" as const, content: "" }];
      const room = await this.#makeRoom(added, !continues, signal);
      const { tools } = this.#start;
      let all = [...room, ...added];
      const prefix = continues ? (all.pop() as AssistantMessage) : undefined;
      const progress = turn(all, {
        ask: (asked, answer) =>
          this.#ask(asked, answer === 1 ? prefix : undefined, constraint, signal),
        run: (call) => resultOf(call, tools),
        ...{ mostAnswers: MAX_ANSWERS, begun: prefix, signal },
      });
      for await (const { messages, delta } of progress) {
        all = [...messages];
        if (delta.content) yield delta.content;
      }
      await this.#keep(all, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw orNotSupported(error, responseConstraint);
    } finally {
      free();
    }
  }

  /** Asks for the next message, or for the rest of one that was begun. */
  #ask(
    asked: readonly ChatRequestMessage[],
    begun: AssistantMessage | undefined,
    constraint: Record<string, unknown>,
    signal: AbortSignal,
  ) {
    const { engine, initial, tools, sampling } = this.#start;
    const body = {
      model: "default",
      messages: [...initial, ...asked, ...(begun ? [begun] : [])],
      ...(sampling.temperature !== undefined && { temperature: sampling.temperature }),
      ...(sampling.topK !== undefined && { top_k: sampling.topK }),
      ...(begun && { continue_final_message: true, add_generation_prompt: false }),
      // By default the endpoint continues a message of the assistant.
      ...(!begun && asked.at(-1)?.role === "assistant" && { add_generation_prompt: true }),
      ...toolFields(tools),
      ...constraint,
    };
    return engine.chat.completions.create({ ...body, stream: true }, { signal });
  }

  /** The conversation from now on. */
  async #keep(later: readonly ChatRequestMessage[], signal: AbortSignal): Promise<void> {
    const count = await this.#measure([...this.#start.initial, ...later], false, signal);
    this.#later = later;
    this.#contextUsage = count;
  }

  /**
   * The messages of the conversation to which these can be added: without the oldest turns if there is not enough room.
   *
   * @throws DOMException named `QuotaExceededError` if they do not fit alone
   */
  async #makeRoom(
    added: readonly ChatRequestMessage[],
    asks: boolean,
    signal: AbortSignal,
  ): Promise<readonly ChatRequestMessage[]> {
    let later = this.#later;
    for (;;) {
      const all = [...this.#start.initial, ...later, ...added];
      const count = await this.#measure(all, asks, signal);
      // An answer has one token at least.
      if (count + Number(asks) <= this.contextWindow) break;
      const shorter = withoutOldestTurn(later);
      if (shorter.length === later.length) {
        const quota = this.contextWindow;
        const message = `the prompt has ${count} tokens, and the context of the model ${quota}`;
        throw quotaExceeded(message, { requested: count, quota });
      }
      later = shorter;
    }
    if (later !== this.#later) {
      for (const name of ["contextoverflow", "quotaoverflow"] as const) {
        const event = new Event(name);
        this.dispatchEvent(event);
        this[`on${name}`]?.(event);
      }
    }
    return later;
  }

  #measure(
    messages: readonly ChatRequestMessage[],
    asks: boolean,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    const { engine, tools } = this.#start;
    return measure(engine, messages, { tools, asks, signal });
  }
}

/** The messages from the second one of the user on, behind a system message: results of tools stay with their calls. */
function withoutOldestTurn(messages: readonly ChatRequestMessage[]): readonly ChatRequestMessage[] {
  const kept = messages[0]?.role === "system" ? messages.slice(0, 1) : [];
  const next = messages.findIndex(({ role }, index) => index > kept.length && role === "user");
  return next < 0 ? kept : [...kept, ...messages.slice(next)];
}

/** Aborts when one of them does. Not every browser has `AbortSignal.any`. */
function anyOf(signals: readonly AbortSignal[]): AbortSignal {
  const controller = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) controller.abort(signal.reason);
    signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
  }
  return controller.signal;
}
