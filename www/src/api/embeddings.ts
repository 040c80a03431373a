//! `engine.embeddings.create`: vectors of texts.

import type { Embedding, EmbeddingFields, EmbeddingList } from "../generated/types.js";
import type { CallOptions, Calls, Open } from "./calls.js";

/** A request; `docs/api.md` says what each field means. Fields that are not listed are sent too. */
export type EmbeddingRequest = Open<EmbeddingFields>;

/** An answer whose vectors are of this form: `number[]`, or `string` for base64. */
export type EmbeddingsOf<Vector> = Omit<EmbeddingList, "data"> & {
  data: (Omit<Embedding, "embedding"> & { embedding: Vector })[];
};

/** The embeddings API. */
export class Embeddings {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Requests the embeddings of texts. The model must be one for embeddings: `docs/models.md` lists which.
   *
   * @throws InpageError for every error answer of the endpoint
   * @throws DOMException named `AbortError` if `signal` aborts
   */
  create(
    body: EmbeddingRequest & { encoding_format: "base64" },
    options?: CallOptions,
  ): Promise<EmbeddingsOf<string>>;
  create(
    body: EmbeddingRequest & { encoding_format?: "float" | null },
    options?: CallOptions,
  ): Promise<EmbeddingsOf<number[]>>;
  create(body: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingList>;
  async create(body: EmbeddingRequest, options?: CallOptions): Promise<EmbeddingList> {
    return (await this.#calls.post<EmbeddingList, never>(
      "embeddings",
      body,
      options,
    )) as EmbeddingList;
  }
}
