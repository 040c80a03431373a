//! L. Embeddings (specification 19). The cases run with a model that makes embeddings.

import { C, CHAT } from "../chat.mjs";
import { allNear, equal, matches, near, ok } from "../check.mjs";
import { R } from "../context.mjs";
import { ALL } from "../doors.mjs";

const ROUTE = "/v1/embeddings";
const JSON_TYPE = { "content-type": "application/json" };
const BASE64 = { encoding_format: "base64" };

/** The base request with `members` added or replaced; `undefined` removes one. */
const F = (members = {}) => ({ model: "default", input: "The fox ran home.", ...members });

const post = (body, headers = JSON_TYPE) => ({
  method: "POST",
  headers,
  body: JSON.stringify(body),
});

/** The vectors of inputs as base64, which keeps every bit. */
async function vectors(api, input) {
  const { data } = await api.completion(F({ input, ...BASE64 }));
  equal(
    data.map(({ index }) => index),
    data.map((_, i) => i),
    "index",
  );
  return data.map(({ embedding }) => embedding);
}

/** The numbers of a vector in base64. */
function decoded(base64) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  equal(bytes.length % 4, 0, "bytes of a vector");
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
}

const length = (vector) => Math.hypot(...vector);

/** The numbers of F's vector. */
const numbers = async (api, members) => (await api.completion(F(members))).data[0].embedding;

/** The name and members of what a call of the SDK throws. */
async function thrown(call) {
  try {
    await call();
  } catch (error) {
    return { name: error.constructor.name, code: error.code, param: error.param };
  }
  return {};
}

const embeddingCase = (id, title, run, purpose = "embeds") => ({
  ...{ id, title, doors: ALL, purpose },
  run: (ctx) => run(ctx.at(ROUTE), ctx),
});

export default [
  embeddingCase("201", "the routes of embeddings and the JS door", async (api) => {
    const answers = [];
    const requestIds = new Set();
    for (const route of [ROUTE, `/openai${ROUTE}`, `${ROUTE}/?trace=1`]) {
      const { status, headers, body } = await api.request(route, post(F()));
      equal(status, 200, `${route}: status`);
      matches(headers.get("content-type"), /^application\/json\b/, `${route}: content type`);
      requestIds.add(headers.get("x-request-id"));
      answers.push(body);
    }
    equal(requestIds.size, 3, "different x-request-id");
    if (api.door === "page") answers.push(await api.embed(F()));
    for (const answer of answers) equal(answer, answers[0], "body");
  }),
  embeddingCase("202", "embeddings: method and media type", async (api) => {
    const get = await api.request(ROUTE);
    equal([get.status, get.body.error?.code], [405, "method_not_allowed"], "GET");
    matches(get.headers.get("allow"), /\bPOST\b/, "Allow");
    const text = await api.request(ROUTE, post(F(), { "content-type": "text/plain" }));
    equal([text.status, text.body.error?.code], [415, "unsupported_media_type"], "text/plain");
  }),
  embeddingCase("203", "the object of embeddings", async (api) => {
    const answer = await api.completion(F());
    equal(Object.keys(answer).sort(), ["data", "model", "object", "usage"], "keys");
    const listed = (await api.request("/v1/models")).body.data.map(({ id }) => id);
    ok(listed.includes(answer.model), "model", answer.model);
    equal(answer.object, "list", "object");
    const [item, ...others] = answer.data;
    equal(others, [], "other elements");
    const { embedding, ...rest } = item;
    equal(rest, { object: "embedding", index: 0 }, "the element");
    equal(embedding.length, api.info.embeddingWidth, "width");
    ok(embedding.every(Number.isFinite), "finite numbers", embedding);
    const { prompt_tokens } = answer.usage;
    ok(Number.isInteger(prompt_tokens) && prompt_tokens >= 1, "prompt_tokens", prompt_tokens);
    equal(answer.usage, { prompt_tokens, total_tokens: prompt_tokens }, "usage");
  }),
  embeddingCase("204", "one input in its four forms", async (api) => {
    equal(await vectors(api, ["a dog"]), await vectors(api, "a dog"), "text");
    const ids = [5, 6, 7];
    equal(await vectors(api, [ids]), await vectors(api, ids), "ids");
    equal((await api.completion(F({ input: ids }))).usage.prompt_tokens, 3, "prompt_tokens");
  }),
  embeddingCase("205", "several inputs", async (api) => {
    const input = ["one", "two", "three"];
    const single = [];
    let tokens = 0;
    for (const one of input) {
      single.push((await vectors(api, one))[0]);
      tokens += (await api.completion(F({ input: one }))).usage.prompt_tokens;
    }
    equal(await vectors(api, input), single, "vectors");
    equal((await api.completion(F({ input }))).usage.prompt_tokens, tokens, "prompt_tokens");
  }),
  embeddingCase("206", "inputs that are refused", async (api) => {
    const V = api.info.vocabSize;
    for (const [code, inputs] of [
      ["invalid_value", ["", [""], ["a", ""], [], [[]], ["a", 1], [[1], ["a"]], [[[1]]]]],
      ["out_of_range", [[-1], [1.5], [V], [[0], [V]]]],
      ["invalid_type", [{}, 5, true]],
      ["missing_required_parameter", [null, undefined]],
    ]) {
      for (const input of inputs) await api.refused(F({ input }), 400, code, "input");
    }
  }),
  embeddingCase("207", "at most 2048 inputs", async (api) => {
    const many = await vectors(api, Array(2048).fill([5]));
    equal([many.length, new Set(many).size], [2048, 1], "vectors, and different ones");
    await api.refused(F({ input: Array(2049).fill([5]) }), 400, "out_of_range", "input");
  }),
  embeddingCase("208", "texts are never cut", async (api) => {
    const { contextTokens } = api.info;
    const full = F({ input: Array(contextTokens).fill(5) });
    equal((await api.completion(full)).usage.prompt_tokens, contextTokens, "prompt_tokens");
    for (const input of [Array(contextTokens + 1).fill(5), "fox ".repeat(contextTokens + 1)]) {
      await api.refused(F({ input }), 400, "context_length_exceeded", "input");
    }
  }),
  embeddingCase("209", "encoding_format", async (api) => {
    const plain = await numbers(api);
    for (const encoding_format of ["float", null]) {
      equal(await numbers(api, { encoding_format }), plain, `${encoding_format}`);
    }
    // The shortest decimal of a float is not its value as a double.
    const single = Array.from(new Float32Array(plain));
    equal(decoded(await numbers(api, BASE64)), single, "base64");
    const wrong = (encoding_format, code) =>
      api.refused(F({ encoding_format }), 400, code, "encoding_format");
    await wrong("hex", "invalid_value");
    await wrong(1, "invalid_type");
  }),
  embeddingCase("210", "dimensions", async (api) => {
    const W = api.info.embeddingWidth;
    const whole = await numbers(api);
    for (const dimensions of [1, Math.floor(W / 2), W]) {
      const first = whole.slice(0, dimensions);
      const expected = first.map((value) => value / length(first));
      allNear(await numbers(api, { dimensions }), expected, 1e-5, `dimensions ${dimensions}`);
    }
    for (const dimensions of [0, -1, W + 1]) {
      await api.refused(F({ dimensions }), 400, "out_of_range", "dimensions");
    }
    for (const dimensions of [1.5, "2"]) {
      await api.refused(F({ dimensions }), 400, "invalid_type", "dimensions");
    }
  }),
  embeddingCase("211", "vectors of a GGUF file have length one", async (api) => {
    near(length(await numbers(api)), 1, 1e-4, "length");
  }),
  embeddingCase("212", "a vector does not depend on other inputs", async (api) => {
    const input = "The dog was happy.";
    const [alone] = await vectors(api, input);
    equal(await vectors(api, input), [alone], "the second request");
    const others = ["a", "One day a fox and a dog ran to the park. ".repeat(3), "x y"];
    equal((await vectors(api, [...others, input, ...others]))[3], alone, "between others");
    const both = await Promise.all([vectors(api, input), vectors(api, [others[1], input])]);
    equal([both[0][0], both[1][1]], [alone, alone], "at the same time");
  }),
  embeddingCase("213", "embeddings: the model", async (api) => {
    for (const model of [undefined, null, ""]) {
      await api.refused(F({ model }), 400, "missing_required_parameter", "model");
    }
    await api.refused(F({ model: "no/such-model" }), 404, "model_not_found", "model");
  }),
  embeddingCase("214", "embeddings: unknown fields and user", async (api) => {
    const body = F({ foo: 1, prompt: "x" });
    await api.completion(body);
    await api.switches({ unknownFields: "error" });
    const { error } = (await api.refused(body, 400, "unknown_parameter")).body;
    ok(["foo", "prompt"].includes(error.param), "param is foo or prompt", error.param);
    await api.completion(F({ user: "u" }));
    await api.refused(F({ user: 7 }), 400, "invalid_type", "user");
  }),
  embeddingCase("215", "embeddings: bodies", async (api) => {
    for (const body of ["{", ""]) await api.refused(body, 400, "invalid_json", null);
    for (const body of ["[]", "null"]) await api.refused(body, 400, "invalid_body", null);
    await api.switches({ maxBodyBytes: 4096 });
    await api.refused(F({ input: "a".repeat(5000) }), 413, "request_too_large", null);
  }),
  embeddingCase("216", "a model that embeds generates no text", async (api, ctx) => {
    const { data } = (await api.request("/v1/models")).body;
    const entry = data.find(({ id }) => id === api.info.modelId);
    equal([entry.status, entry.capabilities], ["ready", ["embeddings"]], "status, capabilities");
    const model = api.info.modelId;
    await ctx.refused(R({ model }), 400, "unsupported_parameter", "model");
    await ctx.at(CHAT).refused(C({ model }), 400, "unsupported_parameter", "model");
  }),
  embeddingCase("217", "embeddings: the key and readiness", async (api) => {
    await api.switches({ apiKey: "k1" });
    await api.refused(F(), 401, "invalid_api_key", null);
    const headers = { ...JSON_TYPE, authorization: "Bearer k1" };
    equal((await api.post(F(), { headers })).status, 200, "status with the key");
    await api.switches({});
    await api.hooks({ modelState: "loading" });
    await api.refused(F(), 503, "model_loading");
    await api.hooks({ modelState: "unloaded" });
    await api.refused(F(), 503, "model_not_loaded");
  }),
  embeddingCase(
    "218",
    "a model that generates text makes no embeddings",
    async (api) => {
      const { modelId } = api.info;
      await api.refused(F({ model: modelId }), 400, "unsupported_parameter", "model");
    },
    "text",
  ),
  embeddingCase("219", "embeddings: the queue, failures, deadlines", async (api) => {
    const expected = await numbers(api);
    await api.switches({ maxQueue: 1 });
    // The first request keeps the engine busy until the others have arrived.
    await api.hooks({ delayPrefillMs: 700 });
    const replies = await Promise.all([0, 1, 2, 3].map(() => api.post(F())));
    await api.hooks({ delayPrefillMs: 0 });
    const statuses = replies.map(({ status }) => status);
    ok(statuses.includes(200), "one is accepted", statuses);
    ok(statuses.includes(429), "one is refused", statuses);
    for (const { status, headers, body } of replies) {
      if (status === 200) {
        equal(body.data[0].embedding, expected, "vector");
        continue;
      }
      equal([status, body.error.code], [429, "queue_full"], "refusal");
      ok(Number(headers.get("retry-after")) > 0, "Retry-After", headers.get("retry-after"));
    }
    await api.switches({});
    await api.failsAndRecovers(F(), () => numbers(api));
  }),
  embeddingCase("220", "embeddings through openai-node", async (api) => {
    const { embeddings } = api.client();
    const implicit = await embeddings.create(F());
    const explicit = await embeddings.create(F({ encoding_format: "float" }));
    const single = Array.from(new Float32Array(explicit.data[0].embedding));
    equal(Array.from(implicit.data[0].embedding), single, "numbers");
    for (const [members, expected] of [
      [{ input: "" }, { name: "BadRequestError", code: "invalid_value", param: "input" }],
      [{ model: "none" }, { name: "NotFoundError", code: "model_not_found", param: "model" }],
    ]) {
      equal(await thrown(() => embeddings.create(F(members))), expected, JSON.stringify(members));
    }
    await api.hooks({ delayPrefillMs: 60_000 });
    const controller = new AbortController();
    const running = thrown(() => embeddings.create(F(), { signal: controller.signal }));
    while ((await api.hooks({ activeGenerations: true })) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    controller.abort();
    equal((await running).name, "APIUserAbortError", "an aborted request");
    await api.hooks({ delayPrefillMs: 0 });
    await api.idle();
    await api.completion(F());
  }),
];
