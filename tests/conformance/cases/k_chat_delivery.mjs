//! K. Chat: log-probabilities, streams, usage, clients, readiness (specification 10, 12, 13, 18.6, 18.7).

import {
  C,
  chatCase,
  content,
  reply,
  rendered,
  T,
  user,
  withoutIds,
  withoutReasoning,
} from "../chat.mjs";
import { equal, fail, matches, ok } from "../check.mjs";
import { BIAS } from "../context.mjs";
import { ALL } from "../doors.mjs";
import { EventParser } from "../events.mjs";

const CONSTANT = ["id", "created", "model", "system_fingerprint", "object"];
const ROLE = { role: "assistant", content: "" };

/** The name and members of what a call of the SDK throws. */
async function thrown(call) {
  try {
    await call();
  } catch (error) {
    return { name: error.constructor.name, code: error.code, param: error.param };
  }
  return {};
}

/** Each token is listed, but for the one that ends a message. */
function areEntries({ logprobs, finish_reason }, { completion_tokens }) {
  const { length } = logprobs.content;
  const unlisted = completion_tokens - length;
  ok(unlisted === 0 || (unlisted === 1 && finish_reason !== "length"), "entries", length);
}

/** A conversation of many tokens. */
const LONG = Array.from({ length: 9 }, (_, i) => ({
  role: i % 2 ? "assistant" : "user",
  content: `The fox said that he had seen ${i} dogs.`,
}));

export default [
  chatCase("178", "log-probabilities of a message", ALL, T, async (chat) => {
    const members = { logprobs: true, temperature: 1, seed: 178 };
    const { choices, usage } = await chat.completion(C(members));
    const [{ message, logprobs }] = choices;
    equal(logprobs.refusal, null, "refusal");
    areEntries(choices[0], usage);
    for (const { token, logprob, bytes, top_logprobs } of logprobs.content) {
      ok(typeof token === "string" && logprob <= 0, "token and logprob", [token, logprob]);
      ok(Array.isArray(bytes), "bytes", bytes);
      equal(top_logprobs, [], "top_logprobs");
    }
    const bytes = new Uint8Array(logprobs.content.flatMap(({ bytes }) => bytes));
    const joined = new TextDecoder().decode(bytes);
    equal(joined, message.content, "the joined bytes");
    equal((await reply(chat, {})).logprobs, null, "without logprobs");
  }),
  chatCase("179", "three alternatives per token", ALL, T, async (chat) => {
    const members = { logprobs: true, top_logprobs: 3, temperature: 1.3, seed: 179 };
    const { logprobs } = await reply(chat, members);
    for (const { token, logprob, top_logprobs } of logprobs.content) {
      equal(top_logprobs.length, 3, "alternatives");
      const values = top_logprobs.map((it) => it.logprob);
      equal(
        values,
        [...values].sort((a, b) => b - a),
        "best first",
      );
      const own = top_logprobs.find((it) => it.token === token);
      if (own) equal(own.logprob, logprob, "the token's own value");
      else ok(logprob <= values[2], "a token that is not listed", [logprob, values]);
    }
  }),
  chatCase("180", "streamed log-probabilities of a message", ALL, T, async (chat) => {
    const members = { logprobs: true, top_logprobs: 2, temperature: 1, seed: 3 };
    const whole = await reply(chat, members);
    const { choices } = await chat.stream(C(members));
    equal(withoutIds(choices), withoutIds([whole]), "streamed");
  }),
  chatCase("181", "which tokens are listed", ALL, withoutReasoning(T), async (chat) => {
    const ended = await reply(chat, { ...BIAS(chat.EOS), logprobs: true });
    equal(ended.logprobs.content, [], "entries of an end");
    const parameters = { type: "object", properties: {}, additionalProperties: false };
    const { choices, usage } = await chat.completion(
      C({
        tools: [{ type: "function", function: { name: "f", parameters, strict: true } }],
        tool_choice: "required",
        max_tokens: 100,
        logprobs: true,
      }),
    );
    equal(choices[0].message.content, null, "content of a call");
    areEntries(choices[0], usage);
  }),
  chatCase("182", "the bytes of a stream of chat", ALL, T, async (chat) => {
    const { response, text, chunks } = await chat.stream(C({ ignore_eos: true }));
    matches(response.headers.get("content-type"), /^text\/event-stream\b/, "content type");
    ok(text.endsWith("data: [DONE]\n\n"), "ends with [DONE]", text.slice(-40));
    const events = text.slice(0, -2).split("\n\n");
    for (const event of events) matches(event, /^data: [^\n\r]+$/, "event");
    equal(chunks.length, events.length - 1, "chunks before [DONE]");
    equal(chunks[0].object, "chat.completion.chunk", "object");
    chunks.forEach((chunk, i) => {
      equal(chunk.choices.length, 1, `choices of chunk ${i}`);
      for (const name of CONSTANT) equal(chunk[name], chunks[0][name], `${name} of chunk ${i}`);
      ok(!("usage" in chunk), `no usage in chunk ${i}`);
      const [{ delta, finish_reason }] = chunk.choices;
      const isLast = i === chunks.length - 1;
      equal(finish_reason, isLast ? "length" : null, `finish_reason of chunk ${i}`);
      if (i === 0) equal(delta, ROLE, "first delta");
      else if (isLast) equal(delta, {}, "last delta");
      else ok(delta.content.length > 0, `content of chunk ${i}`, delta);
    });
    ok("stop_reason" in chunks.at(-1).choices[0], "stop_reason of the last chunk");
  }),
  chatCase("183", "usage in a stream of chat", ALL, T, async (chat) => {
    const members = { seed: 94, temperature: 1 };
    const { usage } = await chat.completion(C(members));
    const stream_options = { include_usage: true };
    const { chunks } = await chat.stream(C({ ...members, stream_options }));
    const last = chunks.pop();
    equal(last.choices, [], "choices of the last chunk");
    for (const name of ["prompt_tokens", "completion_tokens", "total_tokens"]) {
      equal(last.usage[name], usage[name], name);
    }
    for (const chunk of chunks) equal(chunk.usage, null, "usage of earlier chunks");
  }),
  chatCase("184", "two messages in a stream", ALL, T, async (chat) => {
    const finished = new Set();
    const onChunk = ({ choices }) => {
      const [{ index, finish_reason }] = choices;
      ok(!finished.has(index), `nothing for index ${index} after its finish`);
      if (finish_reason !== null) finished.add(index);
    };
    const { choices } = await chat.stream(C({ n: 2, seed: 184, temperature: 1 }), { onChunk });
    equal(
      choices.map(({ index, roles, finishes }) => [index, roles, finishes]),
      [
        [0, 1, 1],
        [1, 1, 1],
      ],
      "index, roles, finishes",
    );
  }),
  chatCase("185", "a failure while a message is written", ALL, T, async (chat) => {
    const body = C({ max_tokens: 200, ignore_eos: true });
    await chat.hooks({ failAfterTokens: 3 });
    const plain = await chat.refused(body, 500, "internal_error", null);
    equal(plain.headers.get("x-should-retry"), "false", "x-should-retry");
    await chat.hooks({ failAfterTokens: 3 });
    const { status, text } = await chat.post({ ...body, stream: true });
    equal(status, 200, "status of the stream");
    const parser = new EventParser();
    const events = parser.push(new TextEncoder().encode(text));
    equal(parser.data.at(-1), "[DONE]", "last event");
    equal(events.pop().error?.code, "internal_error", "the event before it");
    for (const { choices } of events) equal(choices[0].finish_reason, null, "finish_reason");
  }),
  chatCase("186", "a conversation is continued from the cache", ALL, T, async (chat, ctx) => {
    const ids = await ctx.IDS(rendered(LONG));
    ok(ids.length > 100, "a long prompt", ids.length);
    const body = C({ messages: LONG, temperature: 0 });
    const first = await chat.completion(body);
    const second = await chat.completion(body);
    const { prompt_tokens, prompt_tokens_details } = second.usage;
    const { cached_tokens } = prompt_tokens_details;
    ok(cached_tokens > 0 && cached_tokens < prompt_tokens, "cached_tokens", second.usage);
    equal(second.choices[0].message, first.choices[0].message, "message");
  }),
  chatCase("187", "chat through openai-node", ALL, T, async (chat) => {
    const { chat: api } = chat.client();
    const whole = await api.completions.create(C({ temperature: 0 }));
    let joined = "";
    for await (const { choices } of await api.completions.create(
      C({ temperature: 0, stream: true }),
    )) {
      joined += choices[0].delta.content ?? "";
    }
    equal(joined, whole.choices[0].message.content, "joined content");
    for (const [members, expected] of [
      [{ temperature: 9 }, { name: "BadRequestError", code: "out_of_range", param: "temperature" }],
      [{ model: "none" }, { name: "NotFoundError", code: "model_not_found", param: "model" }],
    ]) {
      for (const stream of [false, true]) {
        const call = () => api.completions.create(C({ ...members, stream }));
        equal(await thrown(call), expected, JSON.stringify({ ...members, stream }));
      }
    }
    const long = C({ max_tokens: 2000, ignore_eos: true, stream: true });
    for await (const _ of await api.completions.create(long)) break;
    await chat.idle();
    await content(chat, {});
  }),
  chatCase("188", "a message is aborted through the JS door", ["page"], T, async (chat) => {
    const before = await content(chat, { temperature: 0 });
    await chat.hooks({ delayStepMs: 20 });
    const controller = new AbortController();
    const long = C({ max_tokens: 2000, ignore_eos: true, stream: true });
    let seen = 0;
    try {
      const stream = await chat.chat(long, { signal: controller.signal });
      for await (const _ of stream) {
        seen += 1;
        if (seen === 3) controller.abort();
      }
      fail("the stream ended without an error");
    } catch (error) {
      equal([error.name, seen], ["AbortError", 3], "the error, and chunks before it");
    }
    await chat.idle();
    await chat.hooks({ delayStepMs: 0 });
    equal(await content(chat, { temperature: 0 }), before, "content of the next request");
  }),
  chatCase("189", "chat: readiness and the queue", ALL, T, async (chat) => {
    await chat.hooks({ modelState: "loading" });
    await chat.refused(C(), 503, "model_loading");
    await chat.hooks({ modelState: "unloaded" });
    await chat.refused(C(), 503, "model_not_loaded");
    await chat.hooks({ modelState: "ready" });
    await chat.switches({ chatTemplate: T, maxQueue: 1 });
    // The first request keeps the engine busy until the others have arrived. Eight run at once.
    await chat.hooks({ delayPrefillMs: 300 });
    const body = C({ messages: [user("x")], max_tokens: 1 });
    const replies = await Promise.all(Array.from({ length: 24 }, () => chat.post(body)));
    const statuses = replies.map(({ status }) => status);
    ok(statuses.includes(200), "one is accepted", statuses);
    ok(statuses.includes(429), "one is refused", statuses);
    for (const { status, body: answer } of replies) {
      if (status !== 200) equal([status, answer.error.code], [429, "queue_full"], "refusal");
    }
  }),
];
