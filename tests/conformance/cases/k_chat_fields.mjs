//! K. Chat: routes, fields, objects, lengths (specification 18, 18.1, 18.5).

import { C, CHAT, chatCase, T, user } from "../chat.mjs";
import { equal, matches, ok } from "../check.mjs";
import { ALL } from "../doors.mjs";

const JSON_TYPE = { "content-type": "application/json" };
const post = (body, headers = JSON_TYPE) => ({
  method: "POST",
  headers,
  body: JSON.stringify(body),
});

/** Each member alone in C must be refused with `code`. */
async function eachRefused(chat, members, code) {
  for (const [field, value, others = {}] of members) {
    await chat.refused(C({ ...others, [field]: value }), 400, code, field);
  }
}

const integer = (value, what) => ok(Number.isInteger(value), what, value);

export default [
  chatCase("121", "the chat routes and the JS door give the same answer", ALL, T, async (chat) => {
    const body = C({ temperature: 0 });
    const answers = [];
    const requestIds = new Set();
    for (const route of [CHAT, `/openai${CHAT}`, `${CHAT}/?trace=1`]) {
      const { status, headers, body: answer } = await chat.request(route, post(body));
      equal(status, 200, `${route}: status`);
      matches(headers.get("content-type"), /^application\/json\b/, `${route}: content type`);
      requestIds.add(headers.get("x-request-id"));
      answers.push(answer);
    }
    equal(requestIds.size, 3, "different x-request-id");
    if (chat.door === "page") answers.push(await chat.chat(body));
    const keys = (object) => Object.keys(object).sort();
    const [first] = answers;
    for (const answer of answers) {
      const [{ message }] = answer.choices;
      equal(keys(answer), keys(first), "key set");
      equal(keys(message), keys(first.choices[0].message), "key set of the message");
      equal(message.content, first.choices[0].message.content, "content");
    }
  }),
  chatCase("122", "chat: method and media type", ALL, T, async (chat) => {
    const get = await chat.request(CHAT);
    equal([get.status, get.body.error?.code], [405, "method_not_allowed"], "GET");
    matches(get.headers.get("allow"), /\bPOST\b/, "Allow");
    const text = await chat.request(CHAT, post(C(), { "content-type": "text/plain" }));
    equal([text.status, text.body.error?.code], [415, "unsupported_media_type"], "text/plain");
  }),
  chatCase("123", "chat without the switch", ALL, undefined, async (chat) => {
    const answer = await chat.post(C());
    if (answer.status !== 200) {
      await chat.refused(C(), 400, "unsupported_parameter", "messages");
    }
  }),
  chatCase("124", "chat: bodies that are no JSON object", ALL, T, async (chat) => {
    for (const body of ["{", ""]) await chat.refused(body, 400, "invalid_json", null);
    for (const body of ["[]", "null"]) await chat.refused(body, 400, "invalid_body", null);
  }),
  chatCase("125", "chat: required fields", ALL, T, async (chat) => {
    for (const field of ["model", "messages"]) {
      for (const absent of [undefined, null]) {
        await chat.refused(C({ [field]: absent }), 400, "missing_required_parameter", field);
      }
    }
    await chat.refused(C({ messages: [] }), 400, "invalid_value", "messages");
  }),
  chatCase("126", "chat: wrong types", ALL, T, (chat) =>
    eachRefused(
      chat,
      [
        ["messages", "x"],
        ["messages", {}],
        ["logprobs", 1],
        ["logprobs", "true"],
        ["top_logprobs", "2", { logprobs: true }],
        ["parallel_tool_calls", 1],
        ["continue_final_message", "x"],
        ["add_generation_prompt", 1],
        ["reasoning_effort", 3],
        ["chat_template_kwargs", []],
        ["chat_template_kwargs", "x"],
        ["tools", {}],
        ["stream", 1],
        ["temperature", "1"],
        ["response_format", "json"],
      ],
      "invalid_type",
    ),
  ),
  chatCase("127", "chat: numbers outside their ranges", ALL, T, (chat) =>
    eachRefused(
      chat,
      [
        ["top_logprobs", -1, { logprobs: true }],
        ["top_logprobs", 21, { logprobs: true }],
        ["temperature", 2.1],
        ["top_p", -0.1],
        ["n", 0],
        ["n", 129],
        ["max_tokens", -1],
        ["max_completion_tokens", -1],
        ["presence_penalty", 2.1],
      ],
      "out_of_range",
    ),
  ),
  chatCase("128", "chat: bounds and neutral values", ALL, T, async (chat) => {
    const efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    for (const members of [
      { logprobs: true, top_logprobs: 0 },
      { logprobs: true, top_logprobs: 20 },
      { logprobs: false },
      { n: 1 },
      ...efforts.map((reasoning_effort) => ({ reasoning_effort })),
      { chat_template_kwargs: {} },
      { parallel_tool_calls: false },
      { tools: [] },
      { skip_special_tokens: true },
      { skip_special_tokens: false },
    ]) {
      await chat.completion(C({ max_tokens: 1, ...members }));
    }
    const { choices, usage } = await chat.completion(C({ max_tokens: 0 }));
    const [{ message, finish_reason }] = choices;
    equal([message.content, finish_reason], ["", "length"], "a message of no tokens");
    equal(usage.completion_tokens, 0, "completion_tokens");
  }),
  chatCase("129", "chat: invalid values", ALL, T, (chat) =>
    eachRefused(
      chat,
      [
        ["reasoning_effort", "extreme"],
        ["top_logprobs", 2],
        ["top_logprobs", 2, { logprobs: false }],
        ["stream_options", { include_usage: true }],
        ["stop", ["a", ""]],
      ],
      "invalid_value",
    ),
  ),
  chatCase("130", "chat: fields of completions and of vLLM", ALL, T, async (chat) => {
    const foreign = [
      ["prompt", "x"],
      ["suffix", "x"],
      ["images", ["data:image/png;base64,AAAA"]],
      ["modalities", ["text", "audio"]],
      ["echo_last", 1],
      ["add_special_tokens", true],
    ];
    await eachRefused(chat, foreign, "unsupported_parameter");
    await chat.switches({ chatTemplate: T, unknownFields: "error" });
    await eachRefused(chat, [["prompt", "x"]], "unsupported_parameter");
    await chat.completion(C({ prompt: null, max_tokens: 1 }));
    const known = { echo: true, prompt_logprobs: 1, return_token_ids: true };
    const body = C({ ...known, images: [], modalities: ["text"], temperature: 0 });
    const whole = await chat.completion(body);
    const { prompt_token_ids, prompt_logprobs, usage, choices } = whole;
    equal(prompt_token_ids.length, usage.prompt_tokens, "prompt_token_ids");
    equal(prompt_logprobs.length, usage.prompt_tokens, "prompt_logprobs");
    equal(prompt_logprobs[0], null, "what nothing predicts");
    equal(choices[0].token_ids.length, usage.completion_tokens, "token_ids");
    const { chunks } = await chat.stream(body);
    equal(chunks[0].prompt_token_ids, prompt_token_ids, "prompt_token_ids of the first chunk");
    const ids = chunks.flatMap((chunk) => chunk.choices[0]?.token_ids ?? []);
    equal(ids, choices[0].token_ids, "token_ids of the stream");
  }),
  chatCase("131", "chat: an unknown model", ALL, T, async (chat) => {
    for (const stream of [false, true]) {
      const body = C({ model: "no/such-model", stream });
      await chat.refused(body, 404, "model_not_found", "model");
    }
  }),
  chatCase("132", "a refused stream of chat is an ordinary error answer", ALL, T, async (chat) => {
    const refused = async (members, status) => {
      const { headers } = await chat.refused(C({ stream: true, ...members }), status, null);
      matches(headers.get("content-type"), /^application\/json\b/, "content type");
    };
    await refused({ temperature: 9 }, 400);
    await refused({ model: "no/such-model" }, 404);
    await refused({ messages: [] }, 400);
    await refused({ grammar: { type: "regex", value: "(" } }, 400);
    await chat.switches({ chatTemplate: "{{ raise_exception('no') }}" });
    await refused({}, 400);
  }),
  chatCase("133", "the object of chat", ALL, T, async (chat) => {
    const answers = [await chat.completion(C()), await chat.completion(C())];
    const now_s = Date.now() / 1000;
    const listed = (await chat.request("/v1/models")).body.data.map(({ id }) => id);
    for (const answer of answers) {
      const keys = ["choices", "created", "id", "model", "object", "system_fingerprint", "usage"];
      equal(Object.keys(answer).sort(), keys, "keys");
      matches(answer.id, /^chatcmpl-[A-Za-z0-9]{24,}$/, "id");
      equal(answer.object, "chat.completion", "object");
      integer(answer.created, "created is an integer");
      ok(Math.abs(answer.created - now_s) <= 10, "created is now", answer.created - now_s);
      ok(listed.includes(answer.model), "model", answer.model);
      const [choice, ...others] = answer.choices;
      equal(others, [], "other choices");
      const names = ["finish_reason", "index", "logprobs", "message", "stop_reason"];
      equal(Object.keys(choice).sort(), names, "keys of the choice");
      equal([choice.index, choice.logprobs], [0, null], "index and logprobs");
      ok(["stop", "length"].includes(choice.finish_reason), "finish_reason", choice);
      const { message } = choice;
      equal(Object.keys(message).sort(), ["content", "refusal", "role"], "keys of the message");
      equal([message.role, message.refusal], ["assistant", null], "role and refusal");
      ok(typeof message.content === "string", "content", message.content);
      const { usage } = answer;
      const sum = usage.prompt_tokens + usage.completion_tokens;
      equal(usage.total_tokens, sum, "total_tokens");
      integer(usage.prompt_tokens_details.cached_tokens, "cached_tokens");
      integer(usage.completion_tokens_details.reasoning_tokens, "reasoning_tokens");
    }
    ok(answers[0].id !== answers[1].id, "different ids");
  }),
  chatCase("134", "a message may fill the context", ALL, T, async (chat) => {
    const { contextTokens } = chat.info;
    const messages = await almostFull(chat);
    for (const defaultMaxTokens of [undefined, 2]) {
      await chat.switches({ chatTemplate: T, defaultMaxTokens });
      const body = C({ messages, max_tokens: undefined, ignore_eos: true });
      const { usage, choices } = await chat.completion(body);
      equal(usage.total_tokens, contextTokens, "total_tokens");
      equal(choices[0].finish_reason, "length", "finish_reason");
    }
  }),
  chatCase("135", "chat: max_completion_tokens", ALL, T, async (chat) => {
    const body = (max_tokens, max_completion_tokens) =>
      C({ max_tokens, max_completion_tokens, ignore_eos: true });
    const generated = async (...limits) =>
      (await chat.completion(body(...limits))).usage.completion_tokens;
    equal(await generated(5, 5), 5, "completion_tokens of 5 and 5");
    await chat.refused(body(5, 6), 400, "conflicting_parameters");
    equal(await generated(undefined, 3), 3, "completion_tokens of 3 alone");
  }),
  chatCase("136", "chat: a conversation that does not fit", ALL, T, async (chat) => {
    const { contextTokens } = chat.info;
    const long = C({ messages: [user("fox ".repeat(contextTokens))] });
    await chat.refused(long, 400, "context_length_exceeded", "messages");
    const messages = await almostFull(chat);
    const strict = { max_tokens: 100, context_length_exceeded_behavior: "error" };
    const body = C({ messages, ...strict });
    await chat.refused(body, 400, "context_length_exceeded", "max_tokens");
  }),
  chatCase("137", "chat: the API key", ALL, T, async (chat) => {
    await chat.switches({ chatTemplate: T, apiKey: "k1" });
    await chat.refused(C(), 401, "invalid_api_key", null);
    const headers = { ...JSON_TYPE, authorization: "Bearer k1" };
    equal((await chat.post(C(), { headers })).status, 200, "status with the key");
  }),
];

/** Messages whose prompt leaves less than 60 tokens of the context. */
async function almostFull(chat) {
  const words = " fox";
  const tokens = async (count) => {
    const body = C({ messages: [user(words.repeat(count))], max_tokens: 0 });
    return (await chat.completion(body)).usage.prompt_tokens;
  };
  const [few, more] = [await tokens(10), await tokens(30)];
  const each = (more - few) / 20;
  const count = 10 + Math.floor((chat.info.contextTokens - 20 - few) / each);
  const left = chat.info.contextTokens - (await tokens(count));
  ok(left > 0 && left < 60, "the prompt nearly fills the context", left);
  return [user(words.repeat(count))];
}
