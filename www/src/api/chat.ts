//! `engine.chat.completions.create`: messages of conversations.

import type {
  ChatCompletion,
  ChatCompletionChunk,
  ChatCompletionFields,
  ChatContentPart,
  ChatMessage,
  FunctionTool,
} from "../generated/types.js";
import type { ImageInput } from "./attachments.js";
import type { AnswerStream, CallOptions, Calls, ComingStream, Open, Typed } from "./calls.js";

/** A request; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type ChatCompletionRequest = Open<
  Omit<ChatCompletionFields, "messages" | "response_format" | "tool_choice" | "tools"> & {
    messages: readonly (ChatRequestMessage | OtherMessage)[];
    response_format?: ChatCompletionFields["response_format"] | Typed;
    tool_choice?: ChatCompletionFields["tool_choice"] | Typed;
    tools?: readonly (FunctionTool | Typed)[] | null;
  }
>;

/** A message, whose images may be objects. */
export type ChatRequestMessage = Omit<ChatMessage, "content"> & {
  content?: string | readonly (ChatContentPart | ChatImagePart)[] | null;
};

/** An image in a message. */
export interface ChatImagePart {
  type: "image_url";
  image_url: ImageInput | { url: ImageInput; detail?: string | null };
}

/** A message as other packages declare it. The endpoint checks it. */
interface OtherMessage {
  role: string;
}

/** A streamed message, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export type ChatCompletionStream = AnswerStream<ChatCompletionChunk>;

/** The chat API. */
export class Chat {
  readonly completions: ChatCompletions;

  constructor(calls: Calls) {
    this.completions = new ChatCompletions(calls);
  }
}

/** Messages of conversations. */
export class ChatCompletions {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Requests the next message of a conversation. The model needs a chat template, its own or the engine's option
   * `endpoint.chatTemplate`.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts; also from the iterator
   */
  create(
    body: ChatCompletionRequest & { stream: true },
    options?: CallOptions,
  ): ComingStream<ChatCompletionStream>;
  create(
    body: ChatCompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<ChatCompletion>;
  create(
    body: ChatCompletionRequest,
    options?: CallOptions,
  ): Promise<ChatCompletion | ChatCompletionStream>;
  create(
    body: ChatCompletionRequest,
    options?: CallOptions,
  ): Promise<ChatCompletion | ChatCompletionStream> {
    return this.#calls.post<ChatCompletion, ChatCompletionChunk>("chat/completions", body, options);
  }
}
