//! A session of the Prompt API: a conversation that the engine's chat answers, within the model's context.

import { orAborted } from "../exchange/abort.js";
import type { Engine } from "../engine/engine.js";
import { type Message, type PromptInput, constraintFields, messagesOf } from "./prompts.js";

/** Options of a prompt. */
export interface PromptOptions {
  signal?: AbortSignal;
  /** A JSON schema, or a regular expression that the whole answer matches (its flags do not count). */
  responseConstraint?: object;
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
  inputUsage: number;
  inputQuota: number;
}

/** A conversation. Prompts are answered one after the other. `quotaoverflow` is dispatched when its oldest messages are left out. */
export class LanguageModelSession extends EventTarget {
  readonly temperature: number | undefined;
  readonly topK: number | undefined;
  /** The most tokens that the conversation and its answers can have. */
  readonly inputQuota: number;
  onquotaoverflow: ((event: Event) => void) | null = null;
  readonly #engine: Engine;
  readonly #initial: readonly Message[];
  #later: readonly Message[];
  #inputUsage: number;
  readonly #ended = new AbortController();
  /** Settles when the last prompt so far is answered. */
  #last: Promise<unknown> = Promise.resolve();

  /** Use `LanguageModel.create`. */
  constructor(start: SessionStart) {
    super();
    this.temperature = start.temperature;
    this.topK = start.topK;
    this.inputQuota = start.inputQuota;
    this.#engine = start.engine;
    this.#initial = start.initial;
    this.#later = start.later;
    this.#inputUsage = start.inputUsage;
  }

  /** The tokens of the conversation so far. */
  get inputUsage(): number {
    return this.#inputUsage;
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
  async measureInputUsage(input: PromptInput, { signal }: PromptOptions = {}): Promise<number> {
    this.#refuseDestroyed();
    const { messages, continues } = messagesOf(input);
    const all = [...this.#initial, ...this.#later, ...messages];
    const { count } = await measure(this.#engine, all, !continues, signal);
    return Math.max(0, count - this.#inputUsage);
  }

  /** A session that continues the same conversation on its own. */
  async clone({ signal }: { signal?: AbortSignal } = {}): Promise<LanguageModelSession> {
    this.#refuseDestroyed();
    signal?.throwIfAborted();
    const { temperature, topK, inputUsage, inputQuota } = this;
    return new LanguageModelSession({
      ...{ engine: this.#engine, initial: this.#initial, later: this.#later },
      ...{ temperature, topK, inputUsage, inputQuota },
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
      const before = await this.#makeRoom(messages, !continues, signal);
      const asked = [...before, ...messages];
      const body = {
        model: "default",
        messages: [...this.#initial, ...asked],
        ...(this.temperature !== undefined && { temperature: this.temperature }),
        ...(this.topK !== undefined && { top_k: this.topK }),
        ...(continues && { continue_final_message: true, add_generation_prompt: false }),
        ...constraintFields(responseConstraint),
      };
      const chat = this.#engine.chat.completions;
      let text = "";
      for await (const { choices } of await chat.create({ ...body, stream: true }, { signal })) {
        const piece = choices[0]?.delta.content;
        if (!piece) continue;
        text += piece;
        yield piece;
      }
      signal.throwIfAborted();
      const last = asked.at(-1);
      const answered: Message[] =
        continues && last
          ? [...asked.slice(0, -1), { role: "assistant", content: last.content + text }]
          : [...asked, { role: "assistant", content: text }];
      await this.#keep(answered, signal);
    } finally {
      free();
    }
  }

  /** The conversation from now on. */
  async #keep(later: readonly Message[], signal: AbortSignal): Promise<void> {
    const { count } = await measure(this.#engine, [...this.#initial, ...later], false, signal);
    this.#later = later;
    this.#inputUsage = count;
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
      const { count } = await measure(this.#engine, all, asks, signal);
      // An answer has one token at least.
      if (count + Number(asks) <= this.inputQuota) break;
      if (later.length === 0) {
        const message = `the prompt has ${count} tokens, and the context of the model ${this.inputQuota}`;
        const error = new DOMException(message, "QuotaExceededError");
        throw Object.assign(error, { requested: count, quota: this.inputQuota });
      }
      later = later.slice(2);
    }
    if (later !== this.#later) {
      const event = new Event("quotaoverflow");
      this.dispatchEvent(event);
      this.onquotaoverflow?.(event);
    }
    return later;
  }
}

/** The tokens of messages, with what makes the model answer if `asks` is true, and of the context. */
export async function measure(
  engine: Engine,
  messages: readonly Message[],
  asks: boolean,
  signal: AbortSignal | undefined,
): Promise<{ count: number; quota: number }> {
  // No template renders an empty conversation.
  const request =
    messages.length === 0
      ? { prompt: "", add_special_tokens: false }
      : { messages: [...messages], add_generation_prompt: asks };
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
