//! `engine.responses.create`: answers of the Responses API. Nothing is stored.

import type {
  ResponseEvent,
  ResponseFields,
  ResponseInputItem,
  ResponseObject,
} from "../generated/types.js";
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
   * Requests a response. The model needs a chat template, its own or the engine's option `chatTemplate`.
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
}

/** The text of all messages of a response. */
function withOutputText(response: ResponseObject): WholeResponse {
  const parts = response.output.flatMap((item) => (item.type === "message" ? item.content : []));
  return { ...response, output_text: parts.map(({ text }) => text).join("") };
}
