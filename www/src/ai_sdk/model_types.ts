//! The part of the AI SDK's interfaces of models (their version 3, which AI SDK 6 and 7 take) that the provider implements. They are written here, so
//! that the package needs none of the SDK's packages.

/** The result of a tool. */
export type ToolOutput =
  | { type: "text" | "error-text"; value: string }
  | { type: "json" | "error-json"; value: unknown }
  | { type: "execution-denied"; reason?: string }
  | { type: "content"; value: readonly { type: string; text?: string }[] };

/** A part of a message; `type` says which of the others it has. */
export interface PromptPart {
  type: string;
  /** The text of `text` and `reasoning` parts. */
  text?: string;
  /** The content of `file` parts: bytes, base64 or an address. */
  data?: Uint8Array | string | URL;
  mediaType?: string;
  /** The id of the call, in `tool-call` and `tool-result` parts. */
  toolCallId?: string;
  toolName?: string;
  input?: unknown;
  output?: ToolOutput;
}

/** A message of a prompt. */
export interface PromptMessage {
  role: string;
  content: string | readonly PromptPart[];
}

/** A tool that the model may call. */
export interface ModelTool {
  type: "function" | "provider";
  name: string;
  description?: string;
  inputSchema?: object;
  strict?: boolean;
}

export type ModelToolChoice =
  | { type: "auto" | "none" | "required" }
  | { type: "tool"; toolName: string };

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
  responseFormat?:
    | { type: "text" }
    | { type: "json"; schema?: object; name?: string; description?: string };
  seed?: number;
  tools?: readonly ModelTool[];
  toolChoice?: ModelToolChoice;
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
  unified: "stop" | "length" | "tool-calls" | "other";
  raw: string | undefined;
}

export interface ModelResponse {
  id: string;
  timestamp: Date;
  modelId: string;
}

export type ModelContent = { type: "text" | "reasoning"; text: string } | ModelToolCall;

export interface ModelToolCall {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  /** JSON text. */
  input: string;
}

export interface ModelResult {
  content: ModelContent[];
  finishReason: ModelFinish;
  usage: ModelUsage;
  request: { body: unknown };
  response: ModelResponse;
  warnings: ModelWarning[];
}

export type ModelStreamPart =
  | { type: "stream-start"; warnings: ModelWarning[] }
  | ({ type: "response-metadata" } & ModelResponse)
  | { type: `${"text" | "reasoning"}-${"start" | "end"}`; id: string }
  | { type: `${"text" | "reasoning" | "tool-input"}-delta`; id: string; delta: string }
  | { type: "tool-input-start"; id: string; toolName: string }
  | { type: "tool-input-end"; id: string }
  | ModelToolCall
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

/** A model of the AI SDK that makes vectors. */
export interface EmbeddingModel {
  readonly specificationVersion: "v3";
  readonly provider: string;
  readonly modelId: string;
  readonly maxEmbeddingsPerCall: number;
  readonly supportsParallelCalls: boolean;
  doEmbed(call: {
    values: string[];
    abortSignal?: AbortSignal;
    providerOptions?: Record<string, Record<string, unknown>>;
  }): Promise<{ embeddings: number[][]; usage: { tokens: number }; warnings: ModelWarning[] }>;
}

/** A model of the AI SDK that puts documents in order. */
export interface RerankingModel {
  readonly specificationVersion: "v3";
  readonly provider: string;
  readonly modelId: string;
  doRerank(call: {
    documents: { type: "text"; values: string[] } | { type: "object"; values: object[] };
    query: string;
    topN?: number;
    abortSignal?: AbortSignal;
    providerOptions?: Record<string, Record<string, unknown>>;
  }): Promise<{
    ranking: { index: number; relevanceScore: number }[];
    response: { id: string; modelId: string };
  }>;
}
