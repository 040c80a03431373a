//! `engine.messages`: messages in the form of Anthropic's API.

import type {
  MessageFields,
  MessageObject,
  MessageStreamEvent,
  MessageTokenCount,
  MessageTool,
  MessageTurn,
  MessageTurnBlock,
} from "../generated/types.js";
import type { ImageInput } from "./attachments.js";
import type { AnswerStream, CallOptions, Calls, ComingStream, Open, Typed } from "./calls.js";

/** The fields that a request for a message and one for the number of its tokens have in common. */
type Common = Omit<
  MessageFields,
  | "max_tokens"
  | "messages"
  | "output_config"
  | "stream"
  | "system"
  | "thinking"
  | "tool_choice"
  | "tools"
> & {
  messages: readonly (MessageRequestTurn | OtherTurn)[];
  output_config?: MessageFields["output_config"] | OtherConfig;
  system?: string | readonly (Typed & { text: string })[] | null;
  thinking?: MessageFields["thinking"] | Typed;
  tool_choice?: MessageFields["tool_choice"] | Typed;
  tools?: readonly (MessageTool | OtherTool)[] | null;
};

/** A request; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type MessageRequest = Open<Common & Pick<MessageFields, "max_tokens" | "stream">>;

/** A request for the number of tokens. */
export type MessageCountRequest = Open<Common>;

/** A turn, whose images may be objects. */
export type MessageRequestTurn = Omit<MessageTurn, "content"> & {
  content: string | readonly (MessageTurnBlock | MessageImageBlock)[];
};

/** An image in a turn. */
export interface MessageImageBlock {
  type: "image";
  source: { type: "url"; url: ImageInput };
}

/** A turn as other packages declare it. The endpoint checks it. */
interface OtherTurn {
  role: string;
}

/** A tool as other packages declare it. */
interface OtherTool {
  name?: string;
  type?: string | null;
}

/** A configuration as other packages declare it. */
interface OtherConfig {
  effort?: string | null;
  format?: Typed | null;
}

/** The events of a message, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export type MessageStream = AnswerStream<MessageStreamEvent>;

/** Anthropic's Messages API. */
export class Messages {
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
    body: MessageRequest & { stream: true },
    options?: CallOptions,
  ): ComingStream<MessageStream>;
  create(
    body: MessageRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<MessageObject>;
  create(body: MessageRequest, options?: CallOptions): Promise<MessageObject | MessageStream>;
  create(body: MessageRequest, options?: CallOptions): Promise<MessageObject | MessageStream> {
    return this.#calls.post<MessageObject, MessageStreamEvent>("messages", body, options);
  }

  /**
   * Counts the tokens of the prompt that these messages make. The model does not run.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  async countTokens(body: MessageCountRequest, options?: CallOptions): Promise<MessageTokenCount> {
    const answer = this.#calls.post<MessageTokenCount, never>(
      "messages/count_tokens",
      body,
      options,
    );
    return (await answer) as MessageTokenCount;
  }
}
