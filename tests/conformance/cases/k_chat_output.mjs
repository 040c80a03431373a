//! K. Chat: sampling, ends, constraints, tools, reasoning (specification 4, 9, 18.5).

import {
  C,
  chatCase,
  content,
  HERMES,
  REASONING,
  reply,
  T,
  user,
  withoutIds,
  withoutReasoning,
} from "../chat.mjs";
import { equal, matches, ok, valid } from "../check.mjs";
import { BIAS, FORCE } from "../context.mjs";
import { ALL } from "../doors.mjs";

const CITY = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] } },
  required: ["city"],
  additionalProperties: false,
};
const SUM = { type: "object", properties: { a: { enum: [1, 2] } }, required: ["a"] };
const fn = (name, parameters, strict = true) => ({
  type: "function",
  function: { name, parameters, strict },
});
const TOOLS = [fn("get_weather", CITY), fn("add", { ...SUM, additionalProperties: false })];
const named = (name) => ({ type: "function", function: { name } });
const LONG = { max_tokens: 200 };

/** A call must be of a declared tool, with arguments that satisfy its schema. */
function checkCall({ id, type, function: called }, what) {
  matches(id, /^call_/, `${what}: id`);
  equal(type, "function", `${what}: type`);
  const tool = TOOLS.find((declared) => declared.function.name === called.name);
  ok(tool, `${what}: the name of a declared tool`, called.name);
  valid(JSON.parse(called.arguments), tool.function.parameters, `${what}: arguments`);
}

/** The number of listed tokens until the end of `text` in what they write; undefined where it is not in it. */
function tokensUntil(listed, text) {
  const written = listed.map(({ bytes }) => String.fromCharCode(...bytes));
  const begin = written.join("").lastIndexOf(text);
  if (begin < 0) return undefined;
  const isWhole = (_, i) => written.slice(0, i + 1).join("").length >= begin + text.length;
  return 1 + written.findIndex(isWhole);
}

/** Checks the form of deltas with calls: ids and names once, in the order of the calls. */
function checkCallDeltas(chunks) {
  let calls = 0;
  for (const { choices } of chunks) {
    for (const delta of choices[0].delta.tool_calls ?? []) {
      const names = Object.keys(delta).sort();
      if (delta.index === calls) {
        equal(names, ["function", "id", "index", "type"], "a call's first delta");
        ok(typeof delta.function.name === "string", "name", delta);
        calls += 1;
      } else {
        equal(delta.index, calls - 1, "index of a later delta");
        equal(names, ["function", "index"], "a call's later delta");
        equal(Object.keys(delta.function), ["arguments"], "its function");
      }
    }
  }
  return calls;
}

const FOX = "The quick brown fox jumps";
const WIDE = "  naïve 🎉👩‍👩‍👧 Ω終\n\n";

export default [
  chatCase("158", "greedy messages are equal", ALL, T, async (chat) => {
    const first = await content(chat, { temperature: 0 });
    equal(await content(chat, { temperature: 0 }), first, "the second content");
    const { choices } = await chat.completion(C({ temperature: 0, n: 3 }));
    equal(
      choices.map(({ message }) => message.content),
      [first, first, first],
      "contents of n 3",
    );
  }),
  chatCase("159", "a seed fixes the message", ALL, T, async (chat) => {
    const members = { temperature: 1.3, seed: 11 };
    const whole = await reply(chat, members);
    equal(await content(chat, members), whole.message.content, "the second content");
    const { choices } = await chat.stream(C(members));
    equal(withoutIds(choices), withoutIds([whole]), "streamed");
  }),
  chatCase("160", "a biased token", ALL, T, async (chat, ctx) => {
    const [X] = await ctx.ordinary();
    const { logprobs } = await reply(chat, { ...BIAS(X), ignore_eos: true, logprobs: true });
    const tokens = logprobs.content.map(({ token }) => token);
    equal(tokens, Array(8).fill(tokens[0]), "tokens");
  }),
  chatCase("161", "a stop string in a message", ALL, T, async (chat) => {
    const members = { ...FORCE(FOX), stop: "own f" };
    const whole = await reply(chat, members);
    equal(
      [whole.message.content, whole.finish_reason, whole.stop_reason],
      ["The quick br", "stop", "own f"],
      "content, finish_reason, stop_reason",
    );
    let joined = "";
    const onChunk = ({ choices }) => {
      joined += choices[0].delta.content ?? "";
      ok("The quick br".startsWith(joined), "a prefix after every chunk", joined);
    };
    const { choices } = await chat.stream(C(members), { onChunk });
    equal(withoutIds(choices), withoutIds([whole]), "streamed");
  }),
  chatCase("162", "white space and wide characters", ALL, T, async (chat) => {
    equal(await content(chat, FORCE(WIDE)), WIDE, "content");
    const { chunks, choices } = await chat.stream(C(FORCE(WIDE)));
    equal(choices[0].message.content, WIDE, "joined content");
    for (const { choices: parts } of chunks) {
      const text = parts[0].delta.content ?? "";
      ok(!text.includes("\uFFFD") && text.isWellFormed?.() !== false, "whole characters", text);
    }
  }),
  chatCase("163", "fields of vendors", ALL, T, async (chat, ctx) => {
    const chosen = await content(chat, { guided_choice: ["yes", "no"], max_tokens: 20 });
    ok(["yes", "no"].includes(chosen), "yes or no", chosen);
    const [X] = await ctx.ordinary();
    const { message, finish_reason, stop_reason } = await reply(chat, {
      ...BIAS(X),
      stop_token_ids: [X],
    });
    equal([message.content, finish_reason, stop_reason], ["", "stop", X], "a stop token");
  }),
  chatCase("164", "three messages", ALL, T, async (chat) => {
    const members = { n: 3, best_of: 3, temperature: 1, seed: 5 };
    const { choices, usage } = await chat.completion(C(members));
    equal(
      choices.map(({ index }) => index),
      [0, 1, 2],
      "index",
    );
    const one = await chat.completion(C({ max_tokens: 0 }));
    equal(usage.prompt_tokens, one.usage.prompt_tokens, "prompt_tokens");
    const streamed = await chat.stream(C(members));
    equal(withoutIds(streamed.choices), withoutIds(choices), "streamed");
  }),
  chatCase("165", "response_format of chat", ALL, T, async (chat) => {
    const json_schema = { name: "city", schema: CITY, strict: true };
    for (const [response_format, schema] of [
      [{ type: "json_object" }, { type: "object" }],
      [{ type: "json_schema", json_schema }, CITY],
    ]) {
      const members = { response_format, ...LONG, seed: 165 };
      const { message, finish_reason } = await reply(chat, members);
      if (finish_reason === "stop") {
        valid(JSON.parse(message.content), schema, response_format.type);
      } else {
        matches(message.content, /^\{/, `${response_format.type}: an object begins`);
      }
    }
    const text = { temperature: 0, response_format: { type: "text" } };
    equal(await content(chat, text), await content(chat, { temperature: 0 }), "text");
  }),
  chatCase("166", "constraints of chat that are refused", ALL, T, async (chat) => {
    const json = { response_format: { type: "json_object" } };
    for (const [members, param] of [
      [{ response_format: { type: "xml" } }, "response_format"],
      [{ response_format: { type: "json_schema" } }, "response_format"],
      [{ grammar: { type: "regex", value: "(" } }, "grammar"],
      [{ ...json, grammar: { type: "regex", value: "a" } }, "grammar"],
    ]) {
      await chat.refused(C(members), 400, null, param);
    }
  }),
  chatCase("167", "a named tool is called in a message", ALL, withoutReasoning(T), async (chat) => {
    const once = { tool_choice: named("get_weather"), parallel_tool_calls: false };
    for (const seed of [1, 2, 3]) {
      const members = { tools: TOOLS, ...once, ...LONG, seed };
      const { message, finish_reason } = await reply(chat, members);
      equal([message.content, finish_reason], [null, "tool_calls"], "content and finish_reason");
      const [call, ...others] = message.tool_calls;
      equal(others, [], "other calls");
      equal(call.function.name, "get_weather", "name");
      checkCall(call, `seed ${seed}`);
    }
  }),
  chatCase("168", "one call of some tool", ALL, withoutReasoning(HERMES), async (chat) => {
    const once = { tool_choice: "required", parallel_tool_calls: false };
    for (const seed of [1, 2, 3]) {
      const { message, finish_reason } = await reply(chat, {
        ...once,
        ...LONG,
        tools: TOOLS,
        seed,
      });
      equal(finish_reason, "tool_calls", `seed ${seed}: finish_reason`);
      equal(message.tool_calls.length, 1, `seed ${seed}: calls`);
      checkCall(message.tool_calls[0], `seed ${seed}`);
    }
  }),
  chatCase("169", "calls in streams", ALL, withoutReasoning(HERMES), async (chat) => {
    const body = C({ tools: TOOLS, tool_choice: "required", max_tokens: 120, seed: 1 });
    const whole = await chat.completion(body);
    const { chunks, choices } = await chat.stream(body);
    const count = checkCallDeltas(chunks);
    const calls = choices[0].message.tool_calls;
    equal(count, calls.length, "first deltas");
    equal(new Set(calls.map(({ id }) => id)).size, count, "different ids");
    equal(withoutIds(choices), withoutIds(whole.choices), "joined deltas");
  }),
  chatCase("170", "tools that are not called", ALL, T, async (chat) => {
    const plain = await content(chat, { temperature: 0 });
    const { message } = await reply(chat, { temperature: 0, tools: TOOLS, tool_choice: "none" });
    equal([message.content, message.tool_calls], [plain, undefined], "none");
    const auto = await reply(chat, { temperature: 0, tools: TOOLS, tool_choice: "auto" });
    equal(auto.message.tool_calls, undefined, "auto");
  }),
  chatCase("171", "invalid tools of chat", ALL, T, async (chat) => {
    for (const [members, param] of [
      [{ tool_choice: "required" }, "tool_choice"],
      [{ tools: TOOLS, tool_choice: named("nope") }, "tool_choice"],
      [{ tools: [{ type: "web_search" }] }, "tools"],
      [{ tools: [{ type: "function", function: { parameters: CITY } }] }, "tools"],
      [{ tools: [TOOLS[0], TOOLS[0]] }, "tools"],
      [{ tools: [fn("f", { type: "string" })] }, "tools"],
    ]) {
      await chat.refused(C(members), 400, null, param);
    }
  }),
  chatCase("172", "a call that is cut off", ALL, withoutReasoning(T), async (chat) => {
    const once = { tool_choice: named("add"), parallel_tool_calls: false };
    const members = { tools: TOOLS, ...once, seed: 1 };
    const whole = await chat.completion(C({ ...members, ...LONG, logprobs: true }));
    const [{ message, logprobs }] = whole.choices;
    const complete = message.tool_calls[0].function.arguments;
    const needed = tokensUntil(logprobs.content, complete);
    // Not all families write the arguments as they are delivered. A line break, 16 spaces and the end of the call may follow
    // them, each a token.
    const last = needed ?? Math.max(2, whole.usage.completion_tokens - 35);
    let shorter = complete;
    for (const max_tokens of [whole.usage.completion_tokens - 1, last - 1, last - 3, 1]) {
      if (max_tokens < 1) continue;
      const cut = await reply(chat, { ...members, max_tokens });
      equal(cut.finish_reason, "length", `${max_tokens} tokens: finish_reason`);
      const given = cut.message.tool_calls?.[0].function.arguments ?? "";
      ok(shorter.startsWith(given), `${max_tokens} tokens: a prefix`, [given, shorter]);
      if (max_tokens < last) ok(given !== complete, `${max_tokens} tokens: not all`, given);
      shorter = given;
    }
  }),
  chatCase("173", "the result of a call", ALL, T, async (chat) => {
    const tool_calls = [
      { id: "c1", type: "function", function: { name: "add", arguments: '{"a": 1}' } },
    ];
    const messages = [
      user("Add."),
      { role: "assistant", content: null, tool_calls },
      { role: "tool", tool_call_id: "c1", content: "3" },
      user("Again."),
    ];
    const body = C({ messages, tools: TOOLS, seed: 1 });
    const { choices } = await chat.completion(body);
    equal(withoutIds((await chat.stream(body)).choices), withoutIds(choices), "streamed");
  }),
  chatCase("174", "a tool that is not strict", ALL, T, async (chat) => {
    const tools = [fn("add", SUM, false)];
    const members = { tools, tool_choice: named("add"), ...LONG, seed: 1 };
    const { message, finish_reason } = await reply(chat, members);
    if (finish_reason !== "tool_calls") {
      equal(finish_reason, "length", "finish_reason");
      return;
    }
    const given = JSON.parse(message.tool_calls[0].function.arguments);
    valid(given, { type: "object" }, "arguments");
  }),
  chatCase("175", "reasoning that the prompt opens", ALL, REASONING, async (chat, ctx) => {
    const [X] = await ctx.ordinary();
    const body = C({ ...BIAS(X), ignore_eos: true, max_tokens: 6 });
    const { choices, usage } = await chat.completion(body);
    const { message } = choices[0];
    ok(message.reasoning_content?.length > 0, "reasoning_content", message);
    equal(message.content, "", "content");
    equal(usage.completion_tokens_details.reasoning_tokens, 6, "reasoning_tokens");
    const streamed = await chat.stream(body);
    equal(withoutIds(streamed.choices), withoutIds(choices), "streamed");
    const later = streamed.chunks.slice(1).map((chunk) => chunk.choices[0].delta);
    ok(
      later.every(({ content }) => content === undefined),
      "no content",
      later,
    );
  }),
  chatCase("176", "reasoning that the prompt closes", ALL, REASONING, async (chat, ctx) => {
    const [X] = await ctx.ordinary();
    const body = C({ ...BIAS(X), reasoning_effort: "none", ignore_eos: true });
    const { choices, usage } = await chat.completion(body);
    const { message } = choices[0];
    ok(message.content.length > 0, "content", message);
    equal(message.reasoning_content, undefined, "reasoning_content");
    equal(usage.completion_tokens_details.reasoning_tokens, 0, "reasoning_tokens");
  }),
  chatCase("177", "constrained output has no reasoning", ALL, REASONING, async (chat) => {
    const forced = (await reply(chat, FORCE("ab cd"))).message;
    equal([forced.content, forced.reasoning_content], ["ab cd", undefined], "a grammar");
    const json_schema = { name: "city", schema: CITY };
    const response_format = { type: "json_schema", json_schema };
    const { message } = await reply(chat, { response_format, ...LONG, seed: 1 });
    valid(JSON.parse(message.content), CITY, "a schema");
    equal(message.reasoning_content, undefined, "reasoning_content");
  }),
];
