//! The requests of lm-evaluation-harness for log-likelihoods, and how it reads the responses: batches of token arrays with
//! echo and one generated token, which is ignored. A continuation is greedy if each token is the best of its position.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PROMPT, startEndpoint } from "./endpoint.mjs";

describe("lm-evaluation-harness", () => {
  let endpoint;

  before(async () => {
    endpoint = await startEndpoint();
  });
  after(() => endpoint?.close());

  async function complete(body) {
    const response = await fetch(`${endpoint.origin}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: "Bearer EMPTY" },
      body: JSON.stringify({ model: "default", temperature: 0, seed: 1234, ...body }),
    });
    const answer = await response.json();
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  }

  /** `[sum of the continuation's log-probabilities, whether each of its tokens was the best]`. */
  function parse(choices, contextLengths) {
    const sorted = [...choices].sort((a, b) => a.index - b.index);
    return sorted.map(({ logprobs }, i) => {
      const start = contextLengths[i];
      const scores = logprobs.token_logprobs.slice(start, -1);
      const tokens = logprobs.tokens.slice(start, -1);
      const tops = logprobs.top_logprobs.slice(start, -1);
      const greedy = tokens.every((token, j) => {
        const [best] = Object.entries(tops[j]).reduce((a, b) => (b[1] > a[1] ? b : a));
        return token === best;
      });
      return [scores.reduce((total, score) => total + score, 0), greedy];
    });
  }

  async function idsOf(prompt) {
    const scoring = { prompt, echo: true, max_tokens: 0, logprobs: 0 };
    const { choices } = await complete({ ...scoring, return_tokens_as_token_ids: true });
    return choices[0].logprobs.tokens.map((label) => Number(label.slice("token_id:".length)));
  }

  test("distinguishes the greedy continuation from others, and ranks it first", async () => {
    const context = await idsOf(PROMPT);
    const long = await idsOf("The dog was happy. He ran to the park with");
    const greedy = async (prompt) => {
      const body = { prompt, max_tokens: 6, ignore_eos: true, return_tokens_as_token_ids: true };
      return (await complete(body)).choices[0].token_ids;
    };
    const continuation = await greedy(context);
    const changed = [...continuation];
    // Any other token.
    changed[2] = (changed[2] + 1) % 512;
    const prompts = [
      [...context, ...continuation],
      [...context, ...changed],
      [...long, ...(await greedy(long))],
    ];
    const { choices } = await complete({
      prompt: prompts,
      echo: true,
      max_tokens: 1,
      logprobs: 1,
    });
    assert.equal(choices.length, 3);
    const contextLengths = [context.length, context.length, long.length];
    const [best, other, third] = parse(choices, contextLengths);
    for (const [score] of [best, other, third]) {
      assert.ok(Number.isFinite(score) && score < 0, `score ${score}`);
    }
    assert.equal(best[1], true, "the greedy continuation is greedy");
    assert.equal(third[1], true, "also in the longer context");
    assert.equal(other[1], false, "the changed continuation is not greedy");
    assert.ok(best[0] > other[0], `${best[0]} > ${other[0]}`);
    for (const [i, prompt] of prompts.entries()) {
      const { token_logprobs } = choices.find(({ index }) => index === i).logprobs;
      assert.equal(token_logprobs.length, prompt.length + 1);
      assert.equal(token_logprobs[0], null);
    }
  });
});
