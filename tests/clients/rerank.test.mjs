//! Rerank through the AI SDK's provider for Cohere against the native server. The libraries are installed here on demand; without
//! npm's registry the tests are skipped.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { RERANKER, startEndpoint } from "./endpoint.mjs";
import { installPackages } from "./packages.mjs";

const isInstalled = await installPackages();
const missing = { skip: !isInstalled && "skipped: the packages cannot be installed" };
const query = "the quick fox";
const documents = ["The dog was happy.", "A fox ran home.", "b"];

describe("AI SDK 7, rerank of Cohere", missing, () => {
  let endpoint;
  let sdk;
  let model;
  before(async () => {
    endpoint = await startEndpoint(RERANKER);
    sdk = await import("ai");
    const { createCohere } = await import("@ai-sdk/cohere");
    model = createCohere({ baseURL: `${endpoint.origin}/v2`, apiKey: "x" }).reranking("default");
  });
  after(() => endpoint?.close());

  const post = async (path, body) => {
    const headers = { "content-type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    return (await fetch(`${endpoint.origin}${path}`, request)).json();
  };

  test("orders documents as the endpoint does", async () => {
    const { results } = await post("/v1/rerank", { model: "default", query, documents });
    const expected = results.map(({ index, relevance_score }) => [index, relevance_score]);
    const { ranking } = await sdk.rerank({ model, query, documents });
    assert.deepEqual(
      ranking.map(({ originalIndex, score }) => [originalIndex, score]),
      expected,
    );
    const best = await sdk.rerank({ model, query, documents, topN: 1 });
    assert.deepEqual(best.rerankedDocuments, [documents[expected[0][0]]]);
  });

  test("cuts documents with maxTokensPerDoc", async () => {
    const long = ["a fox ".repeat(2000)];
    const options = { model, query, documents: long, maxRetries: 0 };
    const error = await sdk.rerank(options).catch((error) => error);
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /context/);
    const cut = { cohere: { maxTokensPerDoc: 8 } };
    const { ranking } = await sdk.rerank({ ...options, providerOptions: cut });
    assert.equal(ranking.length, 1);
  });

  test("all names of the route give the same answer", async () => {
    const body = { model: "default", query, documents };
    const { results } = await post("/v1/rerank", body);
    for (const path of ["/rerank", "/reranking", "/v1/reranking", "/v2/rerank"]) {
      assert.deepEqual((await post(path, body)).results, results, path);
    }
  });
});
