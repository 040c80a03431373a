//! The part of the AI SDK's interface of language models (its version 3, which AI SDK 6 and 7 take) that the provider implements. It is written here,
//! so that the package needs none of the SDK's packages.

/** A part of a prompt. */
interface PromptPart {
  type: string;
  text?: string;
}

/** A message of a prompt. */
interface PromptMessage {
  role: string;
  content: string | readonly PromptPart[];
}

/** The options that the SDK gives. */
export interface ModelCall {
  prompt: readonly PromptMessage[];
  maxOutputTokens?: number;
  temperature?: number;
  stopSequences?: string[];
  topP?: number;
  topK?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  responseFormat?: { type: "text" } | { type: "json"; schema?: object; name?: string };
  seed?: number;
  tools?: readonly unknown[];
  abortSignal?: AbortSignal;
  providerOptions?: Record<string, Record<string, unknown>>;
}

export interface ModelWarning {
  type: "unsupported";
  feature: string;
  details?: string;
}

export interface ModelUsage {
  inputTokens: {
    total: number | undefined;
    noCache: number | undefined;
    cacheRead: number | undefined;
    cacheWrite: number | undefined;
  };
  outputTokens: {
    total: number | undefined;
    text: number | undefined;
    reasoning: number | undefined;
  };
}

export interface ModelFinish {
  unified: "stop" | "length" | "other";
  raw: string | undefined;
}

export interface ModelResponse {
  id: string;
  timestamp: Date;
  modelId: string;
}

export interface ModelResult {
  content: { type: "text"; text: string }[];
  finishReason: ModelFinish;
  usage: ModelUsage;
  request: { body: unknown };
  response: ModelResponse;
  warnings: ModelWarning[];
}

export type ModelStreamPart =
  | { type: "stream-start"; warnings: ModelWarning[] }
  | ({ type: "response-metadata" } & ModelResponse)
  | { type: "text-start" | "text-end"; id: string }
  | { type: "text-delta"; id: string; delta: string }
  | { type: "finish"; usage: ModelUsage; finishReason: ModelFinish }
  | { type: "error"; error: unknown };

export interface ModelStream {
  stream: ReadableStream<ModelStreamPart>;
  request: { body: unknown };
}

/** A model of the AI SDK. */
export interface LanguageModel {
  readonly specificationVersion: "v3";
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  doGenerate(call: ModelCall): Promise<ModelResult>;
  doStream(call: ModelCall): Promise<ModelStream>;
}
