//! The context of a case: requests through one door, with rule E checked on every error, and the abbreviations of
//! the specification (R, IDS, FORCE, BIAS, SCORE). Runs in Node and in pages; a door is
//! `{ name, origin, fetch, hooks(command), OpenAI, complete?, plainFetch? }`.

import { equal, fail, matches, ok, show } from "./check.mjs";
import { EventParser, merge, mergeMessages } from "./events.mjs";

export const P = "The capital of France is";

const JSON_TYPE = { "content-type": "application/json" };
const RESERVED = /[\\.+*?()|[\]{}^$#&~-]/g;

/** A regular expression that matches exactly `text`. */
export const escapeRegex = (text) => text.replace(RESERVED, "\\$&");

/** The completion is exactly `text`. */
export const FORCE = (text) => ({
  grammar: { type: "regex", value: escapeRegex(text) },
  temperature: 0,
  max_tokens: 200,
});

/** Every generated token is `id`. */
export const BIAS = (id) => ({ logit_bias: { [id]: 100 }, temperature: 0 });

/** Members of a body that scores `prompt`. */
export const SCORE = (prompt) => ({ prompt, echo: true, max_tokens: 0, logprobs: 1 });

/** The base request with `members` added or replaced; `undefined` removes one. */
export const R = (members = {}) => ({ model: "default", prompt: P, max_tokens: 8, ...members });

const idOf = (label) => Number(/^token_id:(\d+)$/.exec(label)?.[1] ?? fail(`no id: ${label}`));

/** Rule E for the answer to a request to `path`. */
function checkError(reply, path) {
  const what = `error ${reply.status}`;
  matches(reply.headers.get("content-type") ?? "", /^application\/json\b/, `${what}, content type`);
  ok(reply.headers.get("x-request-id"), `${what} without x-request-id`);
  if (reply.body?.type === "error") {
    // Anthropic's form.
    const { request_id } = reply.body;
    const members = Object.keys(reply.body).sort();
    equal(members, ["error", "request_id", "type"], `${what}, members of the body`);
    equal(request_id, reply.headers.get("request-id"), `${what}, request_id`);
  } else if (/\/rerank(?:ing)?\/?(?:\?|$)/.test(path)) {
    const { error, message, detail, ...others } = reply.body;
    equal(others, {}, `${what}, other members of the body`);
    equal([message, detail], [error.message, error.message], `${what}, message and detail`);
  } else {
    equal(Object.keys(reply.body ?? {}), ["error"], `${what}, members of the body`);
  }
  const names = Object.keys(reply.body.error).sort();
  equal(names, ["code", "message", "param", "type"], `${what}, members of error`);
  const { message, type, param, code } = reply.body.error;
  ok(typeof message === "string" && message !== "", `${what} without a message`, message);
  ok(typeof type === "string", `${what} without a type`, type);
  for (const value of [param, code]) {
    ok(value === null || typeof value === "string", `${what}: param and code`, value);
  }
}

function checkStatus({ status, text }, expected, body) {
  if (status === expected) return;
  fail(
    `status: expected ${expected}, seen ${status}\n    asked ${show(body)}\n    answer ${text.slice(0, 300)}`,
  );
}

export class Context {
  #door;
  #path;
  #ordinary;

  /** `info` is the result of the command `modelInfo`; `path` is the route of the methods that send a body. */
  constructor(door, info, path = "/v1/completions") {
    this.#door = door;
    this.info = info;
    this.#path = path;
  }

  /** The same door, with bodies sent to another route. */
  at(path) {
    return new Context(this.#door, this.info, path);
  }

  /** `native`, `page` or `sw`. */
  get door() {
    return this.#door.name;
  }

  /** End-of-text id. */
  get EOS() {
    return this.info.eosIds[0];
  }

  hooks(command) {
    return this.#door.hooks(command);
  }

  /** Sets the endpoint's switches until the case ends. */
  switches(switches) {
    return this.hooks({ switches });
  }

  /** `completions.create`; in pages only. */
  complete(body, options) {
    return this.#door.complete(body, options);
  }

  /** `chat.completions.create`; in pages only. */
  chat(body, options) {
    return this.#door.chat(body, options);
  }

  /** `embeddings.create`; in pages only. */
  embed(body, options) {
    return this.#door.embed(body, options);
  }

  /** `engine.rerank`; in pages only. */
  rerank(body, options) {
    return this.#door.rerank(body, options);
  }

  /** The page's own `fetch`, or the function that may take its place. */
  plainFetch(url, init) {
    return this.#door.plainFetch(url, init);
  }

  fetch(path, init) {
    return this.#door.fetch(new URL(path, this.#door.origin).href, init);
  }

  /** The official client. It does not retry by default, because the first response counts. */
  client(options = {}) {
    const { OpenAI, origin, fetch } = this.#door;
    return new OpenAI({
      baseURL: `${origin}/v1`,
      apiKey: "x",
      dangerouslyAllowBrowser: true,
      maxRetries: 0,
      fetch,
      ...options,
    });
  }

  /** Any request: `{ status, headers, text, body }`, the body parsed if it is JSON. */
  async request(path, init) {
    const response = await this.fetch(path, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.startsWith("application/json");
    const reply = {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
    };
    if (!response.ok) checkError(reply, path);
    return reply;
  }

  /** A request to the route. A string body is sent unchanged. */
  post(body, init = {}) {
    return this.request(this.#path, {
      method: "POST",
      headers: JSON_TYPE,
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...init,
    });
  }

  /** The object of an answer, which must succeed. */
  async completion(body, init) {
    const reply = await this.post(body, init);
    checkStatus(reply, 200, body);
    return reply.body;
  }

  /** The only choice of a completion of R + `members`. */
  async choice(members) {
    const { choices } = await this.completion(R(members));
    equal(choices.length, 1, "choices");
    return choices[0];
  }

  /** The text of R + `members`. */
  async text(members) {
    return (await this.choice(members)).text;
  }

  /** A request that must be refused. A `null` code or an `undefined` param matches any value. */
  async refused(body, status, code, param, init) {
    const reply = await this.post(body, init);
    checkStatus(reply, status, body);
    const { error } = reply.body;
    if (code !== null) equal(error.code, code, `error.code of ${show(body)}`);
    if (param !== undefined) equal(error.param, param, `error.param of ${show(body)}`);
    return reply;
  }

  /**
   * A stream, read to its end, which must succeed: `{ response, text, data, comments, chunks,
   * choices, usage }`. `onChunk(chunk, chunks so far)` is called with each chunk as it arrives.
   */
  async stream(body, { onChunk, signal, headers } = {}) {
    const response = await this.fetch(this.#path, {
      method: "POST",
      headers: { ...JSON_TYPE, ...headers },
      body: JSON.stringify({ ...body, stream: true }),
      ...(signal ? { signal } : {}),
    });
    const type = response.headers.get("content-type");
    if (response.status !== 200 || !type?.startsWith("text/event-stream")) {
      fail(`${show(body)}: expected a stream, seen ${response.status} ${await response.text()}`);
    }
    const parser = new EventParser();
    const chunks = [];
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      for (const chunk of parser.push(value)) {
        if (chunk.error) fail(`${show(body)}: an error in the stream: ${show(chunk.error)}`);
        chunks.push(chunk);
        onChunk?.(chunk, chunks);
      }
    }
    equal(parser.data.at(-1), "[DONE]", `${show(body)}: last event`);
    const { text, data, comments, leadingComments } = parser;
    return {
      ...{ response, text, data, comments, leadingComments, chunks },
      choices: (chunks[0]?.object === "chat.completion.chunk" ? mergeMessages : merge)(chunks),
      usage: chunks.at(-1)?.usage,
    };
  }

  /** The token ids of a text as a prompt, including an automatic start of text. */
  async IDS(prompt) {
    const body = { model: "default", prompt, echo: true, max_tokens: 0, logprobs: 0 };
    const { choices } = await this.completion({ ...body, return_tokens_as_token_ids: true });
    return choices[0].logprobs.tokens.map(idOf);
  }

  /** The log-probabilities of a prompt's tokens. */
  async SCORE(prompt) {
    const { choices } = await this.completion({ model: "default", ...SCORE(prompt) });
    return choices[0].logprobs.token_logprobs;
  }

  /** X and Y: two ids of ordinary words, neither of which is in P. */
  async ordinary() {
    this.#ordinary ??= await this.#findOrdinary();
    return this.#ordinary;
  }

  async #findOrdinary() {
    const inP = new Set(await this.IDS(P));
    const prompt = "Once upon a time there was a little dog and he ran home";
    const ids = await this.IDS(prompt);
    const { choices } = await this.completion({ model: "default", ...SCORE(prompt) });
    const found = new Set();
    choices[0].logprobs.tokens.forEach((label, i) => {
      if (/^ ?[a-z]{2,}$/i.test(label) && !inP.has(ids[i])) found.add(ids[i]);
    });
    ok(found.size >= 2, "the model has two ordinary tokens", [...found]);
    return [...found].slice(0, 2);
  }

  /** `length` ordinary token ids. */
  async longPrompt(length) {
    const ids = (await this.IDS("Once upon a time there was a little dog and he ran home")).slice(
      1,
    );
    return Array.from({ length }, (_, i) => ids[i % ids.length]);
  }

  /**
   * A request with `body` fails if the model does, and after its deadline; `answer()`, what requests otherwise give, stays the
   * same.
   */
  async failsAndRecovers(body, answer) {
    const expected = await answer();
    await this.hooks({ failAfterTokens: 0 });
    const failed = await this.refused(body, 500, "internal_error", null);
    equal(failed.headers.get("x-should-retry"), "false", "x-should-retry");
    equal(await answer(), expected, "the answer after a failure");
    await this.switches({ requestTimeoutMs: 50 });
    await this.hooks({ delayPrefillMs: 60_000 });
    await this.refused(body, 500, "internal_error", null);
    await this.hooks({ delayPrefillMs: 0 });
    await this.switches({});
    await this.idle();
    equal(await answer(), expected, "the answer after a deadline");
  }

  /** Waits until no generation is in flight; fails after `limit_ms`. */
  async idle(limit_ms = 2000) {
    const end = performance.now() + limit_ms;
    for (;;) {
      const active = await this.hooks({ activeGenerations: true });
      if (active === 0) return;
      if (performance.now() > end) fail(`active generations after ${limit_ms} ms: ${active}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
