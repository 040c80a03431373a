//! `engine.responses`: answers of the Responses API, and compacted conversations. Nothing is stored.

import type {
  CompactFields,
  ResponseCompactedItem,
  ResponseCompaction,
  ResponseEvent,
  ResponseFields,
  ResponseInputItem,
  ResponseKeptPart,
  ResponseObject,
} from "../generated/types.js";
import { type ImageInput, imagesByUrl } from "./attachments.js";
import type { AnswerStream, CallOptions, Calls, ComingStream, Open, Typed } from "./calls.js";

/** A request; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type ResponseRequest = Open<
  Omit<
    ResponseFields,
    | "model"
    | "background"
    | "input"
    | "include"
    | "store"
    | "tools"
    | "tool_choice"
    | "truncation"
    | "text"
  > & {
    model?: string;
    include?: readonly string[] | null;
    truncation?: string | null;
    store?: boolean | null;
    background?: boolean | null;
    input?: string | readonly (ResponseInputItem | OtherItem)[];
    tools?: readonly (NonNullable<ResponseFields["tools"]>[number] | Typed)[] | null;
    tool_choice?: ResponseFields["tool_choice"] | Typed;
    text?: ResponseFields["text"] | OtherText;
  }
>;

/** An item as other packages declare it. The endpoint checks it. */
interface OtherItem {
  type?: string | null;
}

/** The form of a text as other packages declare it. */
interface OtherText {
  format?: Typed;
}

/** A request to compact a conversation; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type CompactRequest = Open<
  Omit<CompactFields, "model" | "input"> & {
    model?: string | null;
    input?: string | readonly (ResponseInputItem | OtherItem)[] | null;
  }
>;

/** A compacted conversation. */
export type CompactedConversation = Omit<ResponseCompaction, "output"> & {
  /** The messages of the user, and then the compaction. */
  output: (KeptMessage | Exclude<ResponseCompactedItem, { type: "message" }>)[];
};

/** A message of the user. An image is what the request has. */
export type KeptMessage = Omit<Extract<ResponseCompactedItem, { type: "message" }>, "content"> & {
  content: (
    | Exclude<ResponseKeptPart, { type: "input_image" }>
    | { type: "input_image"; image_url: ImageInput; detail: string }
  )[];
};

/** The events of a response, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export type ResponseStream = AnswerStream<ResponseEvent>;

/** A response that was not streamed, with its text as the `openai` package adds it. */
export type WholeResponse = ResponseObject & { output_text: string };

/** The Responses API. */
export class Responses {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Requests a response. The model needs a chat template, its own or the engine's option
   * `endpoint.chatTemplate`.
   *
   * @throws InpageError for every error answer of the endpoint, and from the iterator for a failed response
   * @throws DOMException named `AbortError` if `signal` aborts; also from the iterator
   */
  create(
    body: ResponseRequest & { stream: true },
    options?: CallOptions,
  ): ComingStream<ResponseStream>;
  create(
    body: ResponseRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<WholeResponse>;
  create(body: ResponseRequest, options?: CallOptions): Promise<WholeResponse | ResponseStream>;
  create(body: ResponseRequest, options?: CallOptions): Promise<WholeResponse | ResponseStream> {
    const answer = this.#calls.post<ResponseObject, ResponseEvent>("responses", body, options);
    // A stream is returned as it is, because it can be iterated before it is awaited.
    if (body?.stream === true) return answer as ComingStream<ResponseStream>;
    return answer.then((whole) => withOutputText(whole as ResponseObject));
  }

  /**
   * Compacts a conversation: the model writes a summary of it. `output` begins the `input` of later requests instead of the
   * items that were compacted.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  async compact(body: CompactRequest, options?: CallOptions): Promise<CompactedConversation> {
    const answer = await this.#calls.post<ResponseCompaction, never>(
      "responses/compact",
      body,
      options,
    );
    const { output, ...rest } = answer as ResponseCompaction;
    const imageOf = imagesByUrl(body);
    return { ...rest, output: output.map((item) => withImages(item, imageOf)) };
  }
}

/** An item with the images that its URLs mean. */
function withImages(
  item: ResponseCompactedItem,
  imageOf: (url: string) => ImageInput,
): CompactedConversation["output"][number] {
  if (item.type !== "message") return item;
  const content = item.content.map((part) =>
    part.type === "input_image" ? { ...part, image_url: imageOf(part.image_url) } : part,
  );
  return { ...item, content };
}

/** The text of all messages of a response. */
function withOutputText(response: ResponseObject): WholeResponse {
  const parts = response.output.flatMap((item) => (item.type === "message" ? item.content : []));
  return { ...response, output_text: parts.map(({ text }) => text).join("") };
}
