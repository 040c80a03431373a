//! `engine.completions.create`: completions of prompts.

import type { Completion, CompletionFields } from "../generated/types.js";
import type { ImageInput } from "./attachments.js";
import type { AnswerStream, CallOptions, Calls, ComingStream, Open } from "./calls.js";

/** A request; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type CompletionRequest = Open<
  Omit<CompletionFields, "images"> & {
    /** Images, or one list of them per prompt. */
    images?: readonly ImageInput[] | readonly (readonly ImageInput[])[] | null;
  }
>;

/** A streamed completion, to be iterated once. Leaving the loop or calling `cancel()` stops the generation. */
export type CompletionStream = AnswerStream<Completion>;

/** The completions API. */
export class Completions {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Requests a completion. A stream can be awaited, or iterated at once.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts; also from the iterator
   */
  create(
    body: CompletionRequest & { stream: true },
    options?: CallOptions,
  ): ComingStream<CompletionStream>;
  create(
    body: CompletionRequest & { stream?: false | null },
    options?: CallOptions,
  ): Promise<Completion>;
  create(body: CompletionRequest, options?: CallOptions): Promise<Completion | CompletionStream>;
  create(body: CompletionRequest, options?: CallOptions): Promise<Completion | CompletionStream> {
    return this.#calls.post<Completion, Completion>("completions", body, options);
  }
}
