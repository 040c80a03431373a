//! `engine.tokenize`, `engine.detokenize`, `engine.applyTemplate`: what the model's tokenizer and chat template do.

import type {
  ChatMessage,
  DetokenizeFields,
  RenderedTemplate,
  TemplateFields,
  TokenizeFields,
  TokenList,
  TokenPieceList,
  TokenText,
} from "../generated/types.js";
import type { CallOptions, Calls } from "./calls.js";
import type { ChatRequestMessage } from "./chat.js";

type Open<Fields> = Omit<Fields, "model"> & { model?: string; [field: string]: unknown };

/**
 * A request for token ids; `docs/api.md` says what each field means. Without `model`: the one that is ready. Images of messages
 * may be objects.
 */
export type TokenizeRequest = Open<
  Omit<TokenizeFields, "messages"> & { messages?: readonly ChatRequestMessage[] | null }
>;

/** A request for the text of token ids; `docs/api.md` says what each field means. */
export type DetokenizeRequest = Open<DetokenizeFields>;

/** A request for the text of messages; `docs/api.md` says what each field means. */
export type TemplateRequest = Open<TemplateFields>;

/** The three routes. The model does not run. */
export class Tokens {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  tokenize(
    request: string | TokenizeRequest,
    options?: CallOptions,
  ): Promise<TokenList | TokenPieceList> {
    const body = typeof request === "string" ? { prompt: request } : request;
    return this.#post("tokenize", body, options);
  }

  async detokenize(
    request: ArrayLike<number> | DetokenizeRequest,
    options?: CallOptions,
  ): Promise<string> {
    const body = isIds(request) ? { tokens: request } : request;
    return (await this.#post<TokenText>("detokenize", body, options)).prompt;
  }

  async applyTemplate(
    request: readonly ChatMessage[] | TemplateRequest,
    options?: CallOptions,
  ): Promise<string> {
    const body = isMessages(request) ? { messages: request } : request;
    return (await this.#post<RenderedTemplate>("apply-template", body, options)).prompt;
  }

  async #post<Answer>(
    route: string,
    body: Record<string, unknown>,
    options: CallOptions | undefined,
  ): Promise<Answer> {
    const answer = this.#calls.post<Answer, never>(route, { model: "default", ...body }, options);
    return (await answer) as Answer;
  }
}

function isIds(request: ArrayLike<number> | DetokenizeRequest): request is ArrayLike<number> {
  return Array.isArray(request) || ArrayBuffer.isView(request);
}

function isMessages(
  request: readonly ChatMessage[] | TemplateRequest,
): request is readonly ChatMessage[] {
  return Array.isArray(request);
}
