//! `engine.rerank`: documents in the order in which they fit a query.

import type { RerankFields, RerankList } from "../generated/types.js";
import type { CallOptions, Calls } from "./calls.js";

/**
 * A request; `docs/api.md` says what each field means. Without `model`: the reranker that is ready. Fields that are not listed
 * are sent too.
 */
export type RerankRequest = Omit<RerankFields, "model"> & {
  model?: string;
  [field: string]: unknown;
};

/** Scores the documents of a request. */
export async function rerank(
  calls: Calls,
  request: RerankRequest,
  options: CallOptions | undefined,
): Promise<RerankList> {
  const body = { model: "default", ...request };
  return (await calls.post<RerankList, never>("rerank", body, options)) as RerankList;
}
