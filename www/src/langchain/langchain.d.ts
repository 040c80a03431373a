//! The part of LangChain that the model uses. The app supplies `@langchain/core`, whose own types apply there.

declare module "@langchain/core/language_models/llms" {
  export interface BaseLLMParams {
    maxRetries?: number;
    maxConcurrency?: number;
  }
  export interface BaseLLMCallOptions {
    stop?: string[];
    signal?: AbortSignal;
  }
  export abstract class LLM<CallOptions extends BaseLLMCallOptions = BaseLLMCallOptions> {
    declare ParsedCallOptions: CallOptions;
    constructor(fields: BaseLLMParams);
    abstract _llmType(): string;
    abstract _call(prompt: string, options: this["ParsedCallOptions"]): Promise<string>;
  }
}

declare module "@langchain/core/outputs" {
  export class GenerationChunk {
    constructor(fields: { text: string; generationInfo?: Record<string, unknown> });
  }
}
