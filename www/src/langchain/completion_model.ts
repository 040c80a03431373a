//! A language model of LangChain that completes a prompt as it is.

import {
  type BaseLLMCallOptions,
  type BaseLLMParams,
  LLM,
} from "@langchain/core/language_models/llms";
import { GenerationChunk } from "@langchain/core/outputs";
import type { CompletionRequest } from "../page/completions.js";
import type { Engine } from "../page/engine.js";
import type { EngineOptions } from "../page/engine_options.js";
import type { getEngine } from "../page/get_engine.js";

/** Fields of the endpoint, without those that a call determines. */
export type Fields = Partial<Omit<CompletionRequest, "model" | "prompt" | "stream" | "stop">>;

/** What the model is made of, besides the parameters of LangChain's models. */
export interface InpageParams extends BaseLLMParams {
  /** An engine, or the options of one that is started with the first call and shared by models with equal options. */
  engine?: Engine | EngineOptions;
  /** The model's id; `default` if omitted. */
  model?: string;
  /** Fields of every request: `max_tokens`, `temperature`, `response_format`, ... */
  fields?: Fields;
}

/** Options of a call, besides those of LangChain. */
export interface InpageCallOptions extends BaseLLMCallOptions {
  /** Fields of this request. */
  fields?: Fields;
}

/** The class, whose engines come from the package's `getEngine`. */
export abstract class CompletionModel extends LLM<InpageCallOptions> {
  readonly model: string;
  readonly fields: Fields;
  readonly #engine: Engine | EngineOptions;

  constructor({ engine = {}, model = "default", fields = {}, ...params }: InpageParams = {}) {
    super(params);
    this.model = model;
    this.fields = fields;
    this.#engine = engine;
  }

  static lc_name(): string {
    return "Inpage";
  }

  /** Gives the engine for options. */
  protected abstract engineFor: typeof getEngine;

  _llmType(): string {
    return "inpage";
  }

  async _call(prompt: string, options: InpageCallOptions): Promise<string> {
    const { completions } = await this.#ready(options);
    const body = { ...this.#body(prompt, options), stream: false as const };
    const { choices } = await completions.create(body, { signal: options.signal });
    return choices[0]?.text ?? "";
  }

  async *_streamResponseChunks(
    prompt: string,
    options: InpageCallOptions,
    runManager?: { handleLLMNewToken(token: string): Promise<void> },
  ): AsyncGenerator<GenerationChunk> {
    const { completions } = await this.#ready(options);
    const body = { ...this.#body(prompt, options), stream: true as const };
    for await (const { choices } of await completions.create(body, { signal: options.signal })) {
      const [choice] = choices;
      if (choice === undefined) continue;
      const { text, finish_reason } = choice;
      yield new GenerationChunk({
        text,
        ...(finish_reason && { generationInfo: { finish_reason } }),
      });
      await runManager?.handleLLMNewToken(text);
    }
  }

  async #ready({ signal }: InpageCallOptions): Promise<Engine> {
    const engine = this.#engine;
    if ("completions" in engine) return engine;
    return this.engineFor({ ...engine, ...(signal && { signal }) });
  }

  #body(prompt: string, { stop, fields }: InpageCallOptions): CompletionRequest {
    return {
      ...this.fields,
      ...fields,
      ...{ model: this.model, prompt },
      ...(stop && stop.length > 0 && { stop }),
    };
  }
}
