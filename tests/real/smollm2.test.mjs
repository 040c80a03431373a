//! SmolLM2-135M-Instruct outside a page: the perplexity of a text on the CPU device, and greedy tokens on the reference device beside
//! those of llama.cpp.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { buildServer, startServer } from "../conformance/native.mjs";
import { APART, perplexity, provideRealModels, references } from "./models.mjs";

const MAX_CPU_ERROR = 0.02;
/** The reference device is slow: `page_gpu_greedy.test.mjs` compares all tokens. */
const REFERENCE_TOKENS = 6;
const CONTEXT_TOKENS = 512;

const models = await provideRealModels();
const skip = models.reason && `skipped: ${models.reason}`;
const { smolLm2 } = references();

describe("SmolLM2 on the CPU device", { skip }, () => {
  let engine;
  before(async () => {
    const { createEngine } = await import("../../www/dist/node/index.js");
    const load = { contextTokens: CONTEXT_TOKENS };
    engine = await createEngine({ model: models.smolLm2, load });
  });
  after(() => engine?.dispose());

  test("tokenizes as llama.cpp", async () => {
    const body = JSON.stringify({ model: "default", prompt: models.text });
    const init = { method: "POST", body, headers: { "Content-Type": "application/json" } };
    const answer = await engine.fetch("http://localhost/v1/tokenize", init);
    assert.deepEqual((await answer.json()).tokens, smolLm2.ids);
  });

  test("the perplexity of a text is within 2 % of the exact one", async () => {
    const { choices } = await engine.completions.create({
      ...{ model: "default", prompt: models.text, echo: true, max_tokens: 0, logprobs: 0 },
    });
    const logprobs = choices[0].logprobs.token_logprobs.slice(1);
    assert.equal(logprobs.length, smolLm2.logprobs.length);
    const found = perplexity(logprobs);
    const error = Math.abs(found / smolLm2.perplexity - 1);
    assert.ok(error < MAX_CPU_ERROR, `${found} instead of ${smolLm2.perplexity}`);
  });
});

describe("SmolLM2 on the reference device", { skip }, () => {
  let server;
  before(async () => {
    const options = { model: models.smolLm2, device: "reference", context: 128 };
    server = await startServer(await buildServer(), options);
  });
  after(() => server?.close());

  for (const [index, { ids, margins, ...all }] of smolLm2.continuations.entries()) {
    const greedy = all.greedy.slice(0, REFERENCE_TOKENS);
    test(`the first greedy tokens are those of llama.cpp, prompt ${index + 1}`, async () => {
      const response = await fetch(`${server.origin}/v1/completions`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({
          ...{ model: "default", prompt: ids, temperature: 0, max_tokens: greedy.length },
          ...{ ignore_eos: true, return_token_ids: true },
        }),
      });
      const text = await response.text();
      assert.equal(response.status, 200, text);
      const found = JSON.parse(text).choices[0].token_ids;
      const differs = found.findIndex((id, i) => id !== greedy[i]);
      // After two tokens that are close, the texts part.
      if (differs >= 0) {
        const where = `token ${differs}: ${found[differs]} instead of ${greedy[differs]}`;
        assert.ok(margins[differs] < APART, `${where}, logits ${margins[differs]} apart`);
      }
      assert.equal(found.length, greedy.length);
    });
  }
});
