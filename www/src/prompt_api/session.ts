//! A session of the Prompt API: a conversation that the engine's chat answers, within the model's context.

import { orAborted } from "../exchange/abort.js";
import type { ChatDelta } from "../generated/types.js";
import { EMPTY, grown } from "../api/growing_message.js";
import type { Engine } from "../engine/engine.js";
import { type Message, type PromptInput, constraintFields, messagesOf } from "./prompts.js";
import { quotaExceeded } from "./quota_error.js";
import type { SamplingMode } from "./sampling_mode.js";
import { type LanguageModelTool, resultsOf, toolFields } from "./tools.js";

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
  initial: readonly Message[];
  /** The messages after them. */
  later: readonly Message[];
  temperature: number | undefined;
  topK: number | undefined;
  samplingMode: SamplingMode | undefined;
  tools: readonly LanguageModelTool[];
  contextUsage: number;
  contextWindow: number;
}

/** Most answers to one prompt, of which all but the last may call tools. */
const MAX_ANSWERS = 16;

/**
 * A conversation. Prompts are answered one after the other. `contextoverflow` is dispatched when its oldest messages are left out.
 * The names with `input` and `quota` are older ones of the same.
 */
export class LanguageModelSession extends EventTarget {
  readonly temperature: number | undefined;
  readonly topK: number | undefined;
  readonly samplingMode: SamplingMode | undefined;
  /** The most tokens that the conversation and its answers can have. */
  readonly contextWindow: number;
  oncontextoverflow: ((event: Event) => void) | null = null;
  onquotaoverflow: ((event: Event) => void) | null = null;
  readonly #engine: Engine;
  readonly #initial: readonly Message[];
  #later: readonly Message[];
  #contextUsage: number;
  readonly #tools: readonly LanguageModelTool[];
  readonly #ended = new AbortController();
  /** Settles when the last prompt so far is answered. */
  #last: Promise<unknown> = Promise.resolve();

  /** Use `LanguageModel.create`. */
  constructor(start: SessionStart) {
    super();
    this.temperature = start.temperature;
    this.topK = start.topK;
    this.samplingMode = start.samplingMode;
    this.contextWindow = start.contextWindow;
    this.#tools = start.tools;
    this.#engine = start.engine;
    this.#initial = start.initial;
    this.#later = start.later;
    this.#contextUsage = start.contextUsage;
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
   * @throws DOMException named `QuotaExceededError` if the prompt does not fit the context, `AbortError` if the signal aborts, and
   * `InvalidStateError` after `destroy()`
   * @throws InpageError for every error answer of the endpoint
   */
  async prompt(input: PromptInput, options: PromptOptions = {}): Promise<string> {
    let text = "";
    for await (const piece of this.#answer(input, options)) text += piece;
    return text;
  }

  /** Like `prompt`: pieces of the answer. */
  promptStreaming(input: PromptInput, options: PromptOptions = {}): ReadableStream<string> {
    const stopped = new AbortController();
    const signals = [stopped.signal, ...(options.signal ? [options.signal] : [])];
    const pieces = this.#answer(input, { ...options, signal: anyOf(signals) });
    return new ReadableStream<string>({
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        stopped.abort();
        // A generation that waits for its reader ends here, and the next prompt can begin.
        await pieces.return().catch(() => {});
      },
    });
  }

  /** Adds messages to the conversation without an answer. */
  async append(input: PromptInput, { signal }: { signal?: AbortSignal } = {}): Promise<void> {
    await this.#inTurn(signal, async (signal) => {
      const { messages, continues } = messagesOf(input);
      if (continues) throw new TypeError("prefix is for prompts: nothing is answered here");
      await this.#keep([...(await this.#makeRoom(messages, false, signal)), ...messages], signal);
    });
  }

  /** The tokens that a prompt would add to the conversation, without its answer. */
  async measureContextUsage(input: PromptInput, { signal }: PromptOptions = {}): Promise<number> {
    this.#refuseDestroyed();
    const { messages, continues } = messagesOf(input);
    const all = [...this.#initial, ...this.#later, ...messages];
    const count = await this.#measure(all, !continues, signal);
    return Math.max(0, count - this.#contextUsage);
  }

  measureInputUsage(input: PromptInput, options: PromptOptions = {}): Promise<number> {
    return this.measureContextUsage(input, options);
  }

  /** A session that continues the same conversation on its own. */
  async clone({ signal }: { signal?: AbortSignal } = {}): Promise<this> {
    this.#refuseDestroyed();
    signal?.throwIfAborted();
    const { temperature, topK, samplingMode, contextUsage, contextWindow } = this;
    const Session = this.constructor as new (start: SessionStart) => this;
    return new Session({
      ...{ engine: this.#engine, initial: this.#initial, later: this.#later, tools: this.#tools },
      ...{ temperature, topK, samplingMode, contextUsage, contextWindow },
    });
  }

  /** Ends the conversation and stops its answers. The engine stays. */
  destroy(): void {
    this.#ended.abort(new DOMException("the session was destroyed", "AbortError"));
  }

  #refuseDestroyed(): void {
    if (!this.#ended.signal.aborted) return;
    throw new DOMException("the session was destroyed", "InvalidStateError");
  }

  /** Runs `work` after what was asked before. */
  async #inTurn<Result>(
    given: AbortSignal | undefined,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { signal, free } = await this.#turn(given);
    try {
      return await work(signal);
    } finally {
      free();
    }
  }

  /** Waits until what was asked before is done. `free` must be called. */
  async #turn(given: AbortSignal | undefined): Promise<{ signal: AbortSignal; free: () => void }> {
    this.#refuseDestroyed();
    const signal = anyOf([this.#ended.signal, ...(given ? [given] : [])]);
    signal.throwIfAborted();
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
    input: PromptInput,
    { signal: given, responseConstraint }: PromptOptions,
  ): AsyncGenerator<string, void> {
    const { signal, free } = await this.#turn(given);
    try {
      const { messages, continues } = messagesOf(input);
      let asked = [...(await this.#makeRoom(messages, !continues, signal)), ...messages];
      const constraint = constraintFields(responseConstraint);
      for (let answers = 1; ; answers += 1) {
        const isFirst = answers === 1;
        let message = EMPTY;
        for await (const delta of this.#deltas(asked, isFirst && continues, constraint, signal)) {
          message = grown(message, delta);
          if (delta.content) yield delta.content;
        }
        signal.throwIfAborted();
        const last = asked.at(-1);
        if (isFirst && continues && last) {
          asked = asked.slice(0, -1);
          message = { ...message, content: last.content + message.content };
        }
        asked = [...asked, message];
        const calls = message.tool_calls ?? [];
        if (calls.length === 0 || answers === MAX_ANSWERS) break;
        asked = [...asked, ...(await resultsOf(calls, this.#tools))];
        signal.throwIfAborted();
      }
      await this.#keep(asked, signal);
    } finally {
      free();
    }
  }

  /** The difference that a chunk adds to a message of the assistant. */
  async *#deltas(
    asked: readonly Message[],
    continues: boolean,
    constraint: Record<string, unknown>,
    signal: AbortSignal,
  ): AsyncGenerator<ChatDelta, void> {
    const body = {
      model: "default",
      messages: [...this.#initial, ...asked],
      ...(this.temperature !== undefined && { temperature: this.temperature }),
      ...(this.topK !== undefined && { top_k: this.topK }),
      ...(continues && { continue_final_message: true, add_generation_prompt: false }),
      ...toolFields(this.#tools),
      ...constraint,
    };
    const chat = this.#engine.chat.completions;
    for await (const { choices } of await chat.create({ ...body, stream: true }, { signal })) {
      if (choices[0]) yield choices[0].delta;
    }
  }

  /** The conversation from now on. */
  async #keep(later: readonly Message[], signal: AbortSignal): Promise<void> {
    const count = await this.#measure([...this.#initial, ...later], false, signal);
    this.#later = later;
    this.#contextUsage = count;
  }

  /**
   * The messages of the conversation to which these can be added: without the oldest pairs if there is not enough room.
   *
   * @throws DOMException named `QuotaExceededError` if they do not fit alone
   */
  async #makeRoom(
    added: readonly Message[],
    asks: boolean,
    signal: AbortSignal,
  ): Promise<readonly Message[]> {
    let later = this.#later;
    for (;;) {
      const all = [...this.#initial, ...later, ...added];
      const count = await this.#measure(all, asks, signal);
      // An answer has one token at least.
      if (count + Number(asks) <= this.contextWindow) break;
      if (later.length === 0) {
        const quota = this.contextWindow;
        const message = `the prompt has ${count} tokens, and the context of the model ${quota}`;
        throw quotaExceeded(message, { requested: count, quota });
      }
      later = withoutOldestTurn(later);
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

  async #measure(
    messages: readonly Message[],
    asks: boolean,
    signal: AbortSignal | undefined,
  ): Promise<number> {
    return (await measure(this.#engine, messages, this.#tools, asks, signal)).count;
  }
}

/** The messages from the second one of the user on: results of tools stay with their calls. */
function withoutOldestTurn(messages: readonly Message[]): readonly Message[] {
  const next = messages.findIndex(({ role }, index) => index > 0 && role === "user");
  return next < 0 ? [] : messages.slice(next);
}

/** The tokens of messages, with what makes the model answer if `asks` is true, and of the context. */
export async function measure(
  engine: Engine,
  messages: readonly Message[],
  tools: readonly LanguageModelTool[],
  asks: boolean,
  signal: AbortSignal | undefined,
): Promise<{ count: number; quota: number }> {
  // No template renders an empty conversation.
  const request =
    messages.length === 0
      ? { prompt: "", add_special_tokens: false }
      : { messages: [...messages], add_generation_prompt: asks, ...toolFields(tools) };
  const { count, max_model_len: quota } = await engine.tokenize(request, { signal });
  return { count, quota };
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
