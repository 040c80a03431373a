//! Types, checked by the compiler and never run: requests to `engine.rerank`, and its answer.

import {
  createEngine,
  InpageError,
  type RerankList,
  type RerankRequest,
} from "../../www/dist/index.js";

const engine = await createEngine();
const request: RerankRequest = { query: "x", documents: ["a", { text: "b" }] };
const list = await engine.rerank(request);
export const same: RerankList = list;
engine.rerank({ ...request, model: "ranks", top_n: 1, return_documents: true });
engine.rerank({ ...request, top_n: null, max_tokens_per_doc: 8, use_activation: false });
engine.rerank({ ...request, truncate_prompt_tokens: -1, truncation_side: "left", user: "u" });
engine.rerank({ ...request, some_other_field: 1 }, { signal: AbortSignal.timeout(5) });

list.model.trim();
list.usage.total_tokens.toFixed();
for (const { index, relevance_score, document } of list.results) {
  [index.toFixed(), relevance_score.toFixed(), document?.text.trim()];
}
engine.rerank(request).catch((error) => error instanceof InpageError && error.code);

// @ts-expect-error: no documents
engine.rerank({ query: "x" });
// @ts-expect-error: a query is one text
engine.rerank({ query: ["x"], documents: ["a"] });
// @ts-expect-error: a document has a text
engine.rerank({ query: "x", documents: [{ title: "a" }] });
// @ts-expect-error: a side is left or right
engine.rerank({ ...request, truncation_side: "middle" });
// @ts-expect-error: documents are missing unless they are asked for
list.results[0]?.document.text;
// @ts-expect-error: the list has no data
list.data;
