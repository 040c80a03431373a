//! The official JavaScript client against the native server, including retries.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, test } from "node:test";
import OpenAI, * as sdk from "openai";
import { PROMPT, startEndpoint } from "./endpoint.mjs";

describe("openai for JavaScript", () => {
  let endpoint;
  let requests;

  before(async () => {
    endpoint = await startEndpoint();
  });
  after(() => endpoint?.close());
  afterEach(() => endpoint.reset());

  /** A client that counts its requests. */
  function client(options = {}) {
    requests = 0;
    const counting = (url, init) => {
      requests += 1;
      return fetch(url, init);
    };
    return new OpenAI({
      baseURL: `${endpoint.origin}/v1`,
      apiKey: "x",
      fetch: counting,
      ...options,
    });
  }

  const greedy = { model: "default", prompt: PROMPT, temperature: 0, max_tokens: 12 };
  const sampled = { ...greedy, temperature: 1, max_tokens: 400, ignore_eos: true };

  test("completes, plain and streamed", async () => {
    const { completions } = client();
    const plain = await completions.create(greedy);
    assert.match(plain._request_id, /^req_/);
    assert.equal(plain.usage.completion_tokens, 12);
    let text = "";
    let usage;
    const streamed = { ...greedy, stream: true, stream_options: { include_usage: true } };
    for await (const chunk of await completions.create(streamed)) {
      text += chunk.choices[0]?.text ?? "";
      usage = chunk.usage ?? usage;
    }
    assert.equal(text, plain.choices[0].text);
    assert.deepEqual(usage, plain.usage);
  });

  test("lists and finds the model", async () => {
    const { models } = client();
    const ids = [];
    for await (const { id } of models.list()) ids.push(id);
    assert.deepEqual(ids, ["inpage/tales"]);
    assert.equal((await models.retrieve("inpage/tales")).id, "inpage/tales");
  });

  test("maps errors to its classes, also for streams, and does not retry", async () => {
    for (const stream of [false, true]) {
      for (const [members, kind, code, param] of [
        [{ temperature: -1 }, sdk.BadRequestError, "out_of_range", "temperature"],
        [{ prompt: 7 }, sdk.BadRequestError, "invalid_type", "prompt"],
        [{ model: "absent" }, sdk.NotFoundError, "model_not_found", "model"],
      ]) {
        const { completions } = client();
        const call = completions.create({ ...greedy, ...members, stream });
        const error = await call.catch((error) => error);
        assert.ok(error instanceof kind, `${error}`);
        assert.deepEqual([error.code, error.param, requests], [code, param, 1]);
      }
    }
  });

  test("authenticates", async () => {
    await endpoint.hooks({ switches: { apiKey: "k1" } });
    const wrong = client().completions.create(greedy);
    await assert.rejects(wrong, sdk.AuthenticationError);
    const right = await client({ apiKey: "k1" }).completions.create(greedy);
    assert.equal(right.choices.length, 1);
  });

  test("retries after Retry-After while the model loads", async () => {
    await endpoint.hooks({ modelState: "loading" });
    const start = performance.now();
    const answer = client({ maxRetries: 1 }).completions.create(greedy);
    setTimeout(() => endpoint.hooks({ modelState: "ready" }), 500);
    assert.equal((await answer).choices.length, 1);
    assert.equal(requests, 2);
    assert.ok(performance.now() - start >= 4900, "it waits for the five seconds of Retry-After");
  });

  test("retries when the queue was full", async () => {
    await endpoint.hooks({ switches: { maxQueue: 0 } });
    await endpoint.hooks({ delayPrefillMs: 700 });
    // As many as run at once.
    const running = Array.from({ length: 8 }, () => client().completions.create(greedy));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const refused = await client({ maxRetries: 0 })
      .completions.create(greedy)
      .catch((error) => error);
    assert.ok(refused instanceof sdk.RateLimitError, `${refused}`);
    assert.equal(refused.code, "queue_full");
    await endpoint.hooks({ delayPrefillMs: 0 });
    requests = 0;
    const second = await client({ maxRetries: 3 }).completions.create(greedy);
    assert.ok(requests >= 2, `${requests} requests`);
    assert.equal(second.choices[0].text, (await running[0]).choices[0].text);
  });

  test("does not retry permanent failures", async () => {
    await endpoint.hooks({ failAfterTokens: 3 });
    const error = await client({ maxRetries: 2 })
      .completions.create(sampled)
      .catch((error) => error);
    assert.ok(error instanceof sdk.InternalServerError, `${error}`);
    assert.deepEqual([error.status, error.code, requests], [500, "internal_error", 1]);
  });

  test("throws when a stream fails after its head", async () => {
    await endpoint.hooks({ failAfterTokens: 3 });
    let chunks = 0;
    const error = await (async () => {
      const stream = await client().completions.create({ ...sampled, stream: true });
      for await (const _ of stream) chunks += 1;
    })().catch((error) => error);
    assert.ok(error instanceof sdk.APIError, `${error}`);
    assert.equal(error.code, "internal_error");
    assert.ok(chunks > 0, "no text came before the failure");
  });

  test("abort stops the generation, plain and streamed", async () => {
    await endpoint.hooks({ delayStepMs: 20 });
    for (const stream of [false, true]) {
      const controller = new AbortController();
      const { signal } = controller;
      const running = (async () => {
        const answer = await client().completions.create({ ...sampled, stream }, { signal });
        for await (const _ of answer) controller.abort();
      })();
      if (!stream) {
        setTimeout(async () => {
          assert.equal(await endpoint.hooks({ activeGenerations: true }), 1);
          controller.abort();
        }, 200);
      }
      // A stream that is aborted inside its loop ends without an error.
      const outcome = await running.catch((error) => error);
      if (!stream) assert.ok(outcome instanceof sdk.APIUserAbortError, `${outcome}`);
      await endpoint.idle();
    }
  });
});
