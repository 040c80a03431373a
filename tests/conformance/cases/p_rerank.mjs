//! P. Rerank (specification 23). The cases run with a model that reranks, except 314.

import { equal, matches, near, ok } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const ROUTE = "/v1/rerank";
const JSON_TYPE = { "content-type": "application/json" };
const QUERY = "the quick fox";
const DOCUMENTS = ["The dog was happy.", "A fox ran home.", "the end", "b"];

/** The base request with `members` added or replaced; `undefined` removes one. */
const F = (members = {}) => ({
  model: "default",
  query: QUERY,
  documents: DOCUMENTS,
  ...members,
});

const post = (body, headers = JSON_TYPE) => ({
  method: "POST",
  headers,
  body: JSON.stringify(body),
});

const results = async (api, members) => (await api.completion(F(members))).results;

/** The scores of a list of results, in the order of the documents. */
function byIndex(list) {
  const scores = [];
  for (const { index, relevance_score } of list) scores[index] = relevance_score;
  return scores;
}

/** The scores of documents, in their order. */
const scores = async (api, documents, members) =>
  byIndex(await results(api, { documents, ...members }));

const rerankCase = (id, title, run, purpose = "ranks") => ({
  ...{ id, title, doors: ALL, purpose },
  run: (ctx) => run(ctx.at(ROUTE), ctx),
});

export default [
  rerankCase("301", "the routes of rerank and the JS door", async (api) => {
    const answers = [];
    const requestIds = new Set();
    const routes = [ROUTE, `/openai${ROUTE}`, `${ROUTE}/?trace=1`, "/v1/reranking"];
    // In a page, paths without a base path are the site's own.
    if (api.door === "native") routes.push("/rerank", "/reranking", "/v2/rerank");
    for (const route of routes) {
      const { status, headers, body } = await api.request(route, post(F()));
      equal(status, 200, `${route}: status`);
      matches(headers.get("content-type"), /^application\/json\b/, `${route}: content type`);
      requestIds.add(headers.get("x-request-id"));
      answers.push(body);
    }
    equal(requestIds.size, routes.length, "different x-request-id");
    if (api.door === "page") answers.push(await api.rerank({ query: QUERY, documents: DOCUMENTS }));
    equal(new Set(answers.map(({ id }) => id)).size, answers.length, "different ids");
    for (const { id, ...answer } of answers) {
      const { id: first, ...expected } = answers[0];
      equal(answer, expected, `${id} beside ${first}`);
    }
  }),
  rerankCase("302", "rerank: method and media type", async (api) => {
    const get = await api.request(ROUTE);
    equal([get.status, get.body.error?.code], [405, "method_not_allowed"], "GET");
    matches(get.headers.get("allow"), /\bPOST\b/, "Allow");
    const text = await api.request(ROUTE, post(F(), { "content-type": "text/plain" }));
    equal([text.status, text.body.error?.code], [415, "unsupported_media_type"], "text/plain");
  }),
  rerankCase("303", "the object of rerank", async (api) => {
    const answer = await api.completion(F());
    const keys = ["id", "meta", "model", "object", "results", "usage"];
    equal(Object.keys(answer).sort(), keys, "keys");
    equal([answer.object, answer.model], ["list", api.info.modelId], "object, model");
    matches(answer.id, /^rerank-[A-Za-z0-9]{24}$/, "id");
    for (const { index, relevance_score, document, ...others } of answer.results) {
      equal(others, {}, "other members");
      equal(document, { text: DOCUMENTS[index] }, "document");
      ok(relevance_score >= 0 && relevance_score <= 1, "from 0 to 1", relevance_score);
    }
    const { prompt_tokens } = answer.usage;
    ok(Number.isInteger(prompt_tokens) && prompt_tokens >= 4, "prompt_tokens", prompt_tokens);
    equal(answer.usage, { prompt_tokens, total_tokens: prompt_tokens }, "usage");
    equal(answer.meta, { tokens: { input_tokens: prompt_tokens } }, "meta");
  }),
  rerankCase("304", "the order of results", async (api) => {
    // The two equal documents have equal scores.
    const documents = [...DOCUMENTS, DOCUMENTS[1]];
    const list = await results(api, { documents });
    equal(list.map(({ index }) => index).sort(), [0, 1, 2, 3, 4], "every document once");
    const ordered = [...list].sort(
      (a, b) => b.relevance_score - a.relevance_score || a.index - b.index,
    );
    equal(list, ordered, "the best first, of equal ones the first of the request");
    const of = byIndex(list);
    equal(of[4], of[1], "scores of equal documents");
    ok(new Set(of).size >= 3, "documents differ", of);
    const reversed = await scores(api, [...documents].reverse());
    equal(reversed.reverse(), of, "scores of the reversed request");
  }),
  rerankCase("305", "top_n", async (api) => {
    const all = await results(api);
    for (const top_n of [1, 2, 4, 9, null]) {
      equal(await results(api, { top_n }), all.slice(0, top_n ?? 4), `top_n ${top_n}`);
    }
    for (const top_n of [0, -1]) await api.refused(F({ top_n }), 400, "out_of_range", "top_n");
    await api.refused(F({ top_n: "2" }), 400, "invalid_type", "top_n");
  }),
  rerankCase("306", "return_documents", async (api) => {
    const all = await results(api);
    for (const value of [true, null]) {
      equal(await results(api, { return_documents: value }), all, `${value}`);
    }
    const bare = all.map(({ index, relevance_score }) => ({ index, relevance_score }));
    equal(await results(api, { return_documents: false }), bare, "false");
    await api.refused(F({ return_documents: 1 }), 400, "invalid_type", "return_documents");
  }),
  rerankCase("307", "use_activation", async (api) => {
    const all = await results(api);
    const raw = await results(api, { use_activation: false });
    equal(
      raw.map(({ index }) => index),
      all.map(({ index }) => index),
      "order",
    );
    for (const [place, { relevance_score }] of raw.entries()) {
      const sigmoid = 1 / (1 + Math.exp(-relevance_score));
      near(all[place].relevance_score, sigmoid, 1e-6, `sigmoid of ${relevance_score}`);
    }
  }),
  rerankCase("308", "documents as strings and objects", async (api) => {
    const expected = await scores(api, DOCUMENTS);
    const objects = DOCUMENTS.map((text, id) => ({ text, id, title: "x" }));
    equal(await scores(api, objects), expected, "objects");
    equal(await scores(api, [DOCUMENTS[0], ...objects.slice(1)]), expected, "both");
    const list = await results(api, { documents: ["", { text: "" }] });
    equal(
      list.map(({ index, document }) => [index, document.text]),
      [
        [0, ""],
        [1, ""],
      ],
      "empty documents",
    );
  }),
  rerankCase("309", "queries and documents that are refused", async (api) => {
    for (const [param, code, values] of [
      ["query", "missing_required_parameter", [undefined, null]],
      ["query", "invalid_type", [["a"], 5, {}]],
      ["query", "invalid_value", [""]],
      ["documents", "missing_required_parameter", [undefined, null]],
      ["documents", "invalid_type", ["a", {}, ["a", 1], [null], [{ text: 1 }], [{ body: "a" }]]],
      ["documents", "invalid_value", [[], Array(2049).fill("a")]],
    ]) {
      for (const value of values) await api.refused(F({ [param]: value }), 400, code, param);
    }
  }),
  rerankCase("310", "a score does not depend on other documents", async (api) => {
    const [alone] = await scores(api, [DOCUMENTS[1]]);
    equal((await scores(api, DOCUMENTS))[1], alone, "between others");
    const long = "One day a fox and a dog ran to the park. ".repeat(3);
    const many = [...Array(20).fill(long), DOCUMENTS[1], ...Array(20).fill("a")];
    equal((await scores(api, many))[20], alone, "between many");
    const both = await Promise.all([scores(api, [DOCUMENTS[1]]), scores(api, many)]);
    equal([both[0][0], both[1][20]], [alone, alone], "at the same time");
  }),
  rerankCase("311", "documents are cut only on request", async (api) => {
    const { contextTokens } = api.info;
    const long = "fox ".repeat(contextTokens + 1);
    const documents = ["b", long];
    await api.refused(F({ documents }), 400, "context_length_exceeded", "documents");
    await api.refused(F({ query: long }), 400, "context_length_exceeded");
    for (const limit of [{ max_tokens_per_doc: 4 }, { truncate_prompt_tokens: -1 }]) {
      const { status, headers, body } = await api.post(F({ documents, ...limit }));
      equal(status, 200, `${JSON.stringify(limit)}: status`);
      equal(body.results.length, 2, "results");
      ok(body.usage.prompt_tokens <= 2 * contextTokens, "prompt_tokens", body.usage);
      ok(Number(headers.get("x-prompt-truncated")) > 0, "x-prompt-truncated");
    }
    const short = await api.post(F({ truncate_prompt_tokens: -1 }));
    equal(short.headers.get("x-prompt-truncated"), null, "nothing is cut");
    const left = F({ truncate_prompt_tokens: 9, truncation_side: "left" });
    await api.refused(left, 400, "invalid_value", "truncation_side");
  }),
  rerankCase("312", "rerank: the model and its alias", async (api) => {
    const { modelId } = api.info;
    const expected = await api.completion(F({ model: modelId }));
    const byAlias = await api.completion(F({ model: "default" }));
    equal([byAlias.model, byAlias.results], [modelId, expected.results], "default");
    for (const model of [undefined, null, ""]) {
      await api.refused(F({ model }), 400, "missing_required_parameter", "model");
    }
    await api.refused(F({ model: "no/such-model" }), 404, "model_not_found", "model");
  }),
  rerankCase("313", "a reranker answers no other route", async (api, ctx) => {
    const { data } = (await api.request("/v1/models")).body;
    const { modelId: model } = api.info;
    const entry = data.find(({ id }) => id === model);
    equal([entry.status, entry.capabilities], ["ready", ["rerank"]], "status, capabilities");
    await ctx.refused(R({ model }), 400, "unsupported_parameter", "model");
    const embeddings = ctx.at("/v1/embeddings");
    await embeddings.refused({ model, input: "a" }, 400, "unsupported_parameter", "model");
  }),
  rerankCase(
    "314",
    "a model that generates text reranks nothing",
    async (api) => {
      const { modelId: model } = api.info;
      await api.refused(F({ model }), 400, "unsupported_parameter", "model");
    },
    "text",
  ),
  rerankCase("315", "rerank: unknown fields, bodies, the key and readiness", async (api) => {
    const body = F({ foo: 1 });
    await api.completion(body);
    await api.switches({ unknownFields: "error" });
    await api.refused(body, 400, "unknown_parameter", "foo");
    await api.completion(F({ user: "u" }));
    await api.switches({});
    for (const text of ["{", ""]) await api.refused(text, 400, "invalid_json", null);
    for (const text of ["[]", "null"]) await api.refused(text, 400, "invalid_body", null);
    await api.switches({ apiKey: "k1" });
    await api.refused(F(), 401, "invalid_api_key", null);
    const headers = { ...JSON_TYPE, authorization: "Bearer k1" };
    equal((await api.post(F(), { headers })).status, 200, "status with the key");
    await api.switches({});
    await api.hooks({ modelState: "loading" });
    await api.refused(F(), 503, "model_loading");
  }),
  rerankCase("316", "rerank: failures and deadlines", (api) =>
    api.failsAndRecovers(F(), () => results(api)),
  ),
];
