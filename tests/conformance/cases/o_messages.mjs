//! O. Anthropic's Messages: fields, turns, answers, events (specification 22).

import { HERMES, REASONING, rendered, user } from "../chat.mjs";
import { equal, matches, ok, valid } from "../check.mjs";
import { FORCE } from "../context.mjs";
import { ALL } from "../doors.mjs";
import {
  A,
  events,
  joined,
  lasting,
  MESSAGES,
  messagesCase,
  promptTokens,
  textOf,
} from "../messages.mjs";

const CITY = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] } },
  required: ["city"],
  additionalProperties: false,
};
const TOOL = { name: "get_weather", input_schema: CITY };
const ONE_CALL = {
  tools: [TOOL],
  tool_choice: { type: "any", disable_parallel_tool_use: true },
  max_tokens: 200,
  seed: 1,
};
const CALL = { type: "tool_use", id: "toolu_1", name: "get_weather", input: {} };
const RESULT = { type: "tool_result", tool_use_id: "toolu_1", content: "sunny" };
const GREEDY = { temperature: 0 };
const FOX = "The quick brown fox";

/** A + `members` must have the prompt that T makes of `chat`. */
async function hasMessages(messages, ctx, members, chat, what) {
  const answer = await messages.completion(A({ ...GREEDY, ...members }));
  const prompt = rendered(chat);
  const body = { model: "default", prompt, max_tokens: 8, temperature: 0 };
  const { choices, usage } = await ctx.completion(body);
  equal(promptTokens(answer), usage.prompt_tokens, `${what}: tokens of the prompt`);
  equal(textOf(answer), choices[0].text, `${what}: the text`);
}

export default [
  messagesCase("270", "the route of messages", ALL, null, async (messages, ctx) => {
    const paths = [MESSAGES, "/openai/v1/messages", `${MESSAGES}?beta=true`];
    const texts = [];
    for (const path of paths) texts.push(textOf(await ctx.at(path).completion(A(GREEDY))));
    equal(texts, Array(3).fill(texts[0]), "texts");
    const { status, headers } = await messages.request(MESSAGES, { method: "GET" });
    equal(status, 405, "status of GET");
    matches(headers.get("allow"), /POST/, "Allow");
  }),
  messagesCase("271", "the object of a message", ALL, null, async (messages) => {
    // A model may end at once, without a block.
    const first = await messages.completion(A({ min_tokens: 1 }));
    matches(first.id, /^msg_[A-Za-z0-9]{24}$/, "id");
    equal([first.type, first.role], ["message", "assistant"], "type and role");
    ok(["end_turn", "max_tokens"].includes(first.stop_reason), "stop_reason", first.stop_reason);
    equal(first.stop_sequence, null, "stop_sequence");
    const { output_tokens, cache_creation_input_tokens } = first.usage;
    ok(promptTokens(first) > 0 && output_tokens > 0, "usage", first.usage);
    equal(cache_creation_input_tokens, 0, "cache_creation_input_tokens");
    equal(first.content.length, 1, "blocks");
    equal(first.content[0].type, "text", "type of the block");
    const second = await messages.completion(A());
    ok(second.id !== first.id, "another id");
  }),
  messagesCase("272", "missing and wrong fields", ALL, null, async (messages) => {
    for (const name of ["model", "max_tokens", "messages"]) {
      await messages.refused(A({ [name]: undefined }), 400, "missing_required_parameter", name);
    }
    const wrong = { messages: 5, system: 1, tools: {}, tool_choice: "any", thinking: true };
    for (const [name, value] of Object.entries({ ...wrong, output_config: "x" })) {
      await messages.refused(A({ [name]: value }), 400, "invalid_type", name);
    }
    for (const [name, value] of Object.entries({ temperature: 1.1, top_p: -0.1, max_tokens: -1 })) {
      await messages.refused(A({ [name]: value }), 400, "out_of_range", name);
    }
    await messages.refused(A({ messages: [] }), 400, "invalid_value", "messages");
    await messages.refused("{", 400, "invalid_json", null);
  }),
  messagesCase("273", "what needs a server is refused by name", ALL, null, async (messages) => {
    const refused = {
      container: "c",
      mcp_servers: [{ type: "url", url: "https://a.example", name: "a" }],
      tools: [{ type: "web_search_20250305", name: "web_search" }],
      messages: [user([{ type: "document", source: { type: "text", data: "x" } }])],
    };
    for (const [name, value] of Object.entries(refused)) {
      await messages.refused(A({ [name]: value }), 400, "unsupported_parameter", name);
    }
    await messages.completion(
      A({ metadata: { user_id: "u" }, service_tier: "auto", mcp_servers: [] }),
    );
  }),
  messagesCase("274", "turns and the system prompt", ALL, null, async (messages, ctx) => {
    const asked = user("Tell me of a fox.");
    await hasMessages(messages, ctx, {}, [asked], "a string");
    const blocks = [
      { type: "text", text: "Tell me", cache_control: { type: "ephemeral" } },
      { type: "text", text: "of a fox." },
    ];
    const said = [user("Tell me\nof a fox.")];
    await hasMessages(messages, ctx, { messages: [user(blocks)] }, said, "blocks");
    const turns = [user("Tell me"), user("of a fox.")];
    await hasMessages(messages, ctx, { messages: turns }, said, "turns of one role");
    const system = { role: "system", content: "Be brief." };
    await hasMessages(messages, ctx, { system: "Be brief." }, [system, asked], "system");
    const history = [asked, { role: "assistant", content: "No." }, user("Why?")];
    await hasMessages(messages, ctx, { messages: history }, history, "a history");
  }),
  messagesCase("275", "calls and their results", ALL, null, async (messages) => {
    const turns = [user("Weather?"), { role: "assistant", content: [CALL] }, user([RESULT])];
    const none = { tools: [TOOL], tool_choice: { type: "none" } };
    await messages.completion(A({ messages: turns, ...none }));
    const alone = [user([RESULT])];
    await messages.refused(A({ messages: alone }), 400, "invalid_value", "messages");
  }),
  messagesCase("276", "turns and blocks that are wrong", ALL, null, async (messages) => {
    const source = { type: "base64", media_type: "image/png", data: "AAAA" };
    const image = user([{ type: "image", source }]);
    await messages.refused(A({ messages: [image] }), 400, null, "messages");
    for (const turn of [
      5,
      { role: "king", content: "x" },
      user([]),
      user([{ type: "nonsense" }]),
      user([{ type: "text" }]),
      { role: "assistant", content: [{ ...CALL, input: "{}" }] },
    ]) {
      await messages.refused(A({ messages: [turn] }), 400, null, "messages");
    }
  }),
  messagesCase("277", "reasons of the end", ALL, null, async (messages) => {
    const cut = await messages.completion(A({ max_tokens: 3, ignore_eos: true }));
    equal([cut.stop_reason, cut.usage.output_tokens], ["max_tokens", 3], "cut");
    const forced = { ...FORCE(FOX), max_tokens: 60 };
    const ended = await messages.completion(A(forced));
    equal([ended.stop_reason, textOf(ended)], ["end_turn", FOX], "ended");
    const stopped = await messages.completion(A({ ...forced, stop_sequences: ["x", " fox"] }));
    equal([stopped.stop_reason, stopped.stop_sequence], ["stop_sequence", " fox"], "stopped");
    equal(textOf(stopped), "The quick brown", "text before the sequence");
  }),
  messagesCase("278", "text that satisfies a schema", ALL, null, async (messages) => {
    const format = { type: "json_schema", schema: CITY };
    for (const members of [{ output_config: { format } }, { output_format: format }]) {
      const answer = await messages.completion(A({ ...members, max_tokens: 100, seed: 1 }));
      valid(JSON.parse(textOf(answer)), CITY, "the text");
    }
    const wrong = A({ output_config: { format: { type: "xml" } } });
    await messages.refused(wrong, 400, null, "output_config");
  }),
  messagesCase("279", "a call that must be made", ALL, HERMES, async (messages) => {
    const { content, stop_reason } = await messages.completion(A(ONE_CALL));
    equal([stop_reason, content.length], ["tool_use", 1], "stop_reason and blocks");
    equal([content[0].type, content[0].name], ["tool_use", "get_weather"], "block");
    matches(content[0].id, /^toolu_/, "id");
    valid(content[0].input, CITY, "input");
    const named = { ...ONE_CALL, tool_choice: { ...ONE_CALL.tool_choice, type: "tool" } };
    await messages.refused(A(named), 400, null, "tool_choice");
    named.tool_choice.name = "get_weather";
    equal((await messages.completion(A(named))).content[0].name, "get_weather", "named");
  }),
  messagesCase("280", "thinking", ALL, REASONING, async (messages) => {
    const body = { max_tokens: 60, temperature: 0 };
    const plain = await messages.completion(A(body));
    ok(
      plain.content.every(({ type }) => type === "text"),
      "no thinking without the field",
      plain,
    );
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const { content, usage } = await messages.completion(A({ ...body, thinking }));
    equal([content[0].type, content[0].signature], ["thinking", ""], "the first block");
    ok(usage.output_tokens_details.thinking_tokens > 0, "thinking_tokens", usage);
    // It is sent back as it is.
    const turns = [user("Hi"), { role: "assistant", content }, user("Go on.")];
    await messages.completion(A({ messages: turns }));
  }),
  messagesCase("281", "a streamed message", ALL, null, async (messages) => {
    const body = A({ ...GREEDY, ignore_eos: true });
    const seen = await events(messages, body);
    const types = seen.map(({ type }) => type);
    const deltas = types.filter((type) => type === "content_block_delta");
    equal(
      types,
      [
        "message_start",
        "content_block_start",
        ...deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
      ],
      "types",
    );
    ok(deltas.length > 0, "deltas", types);
    const whole = await messages.completion(body);
    equal(lasting(joined(seen)), lasting(whole), "the message of the events");
  }),
  messagesCase("282", "a streamed call", ALL, HERMES, async (messages) => {
    const seen = await events(messages, A(ONE_CALL));
    const start = seen.find(({ type }) => type === "content_block_start");
    equal(start.content_block.input, {}, "input at the start");
    const whole = await messages.completion(A(ONE_CALL));
    equal(lasting(joined(seen)), lasting(whole), "the message of the events");
  }),
  messagesCase("283", "a failure", ALL, null, async (messages, ctx) => {
    const body = A({ max_tokens: 200, ignore_eos: true });
    await ctx.hooks({ failAfterTokens: 3 });
    const plain = await messages.refused(body, 500, "internal_error", null);
    equal(plain.headers.get("x-should-retry"), "false", "x-should-retry");
    equal(plain.body.error.type, "api_error", "type");
    await ctx.hooks({ failAfterTokens: 3 });
    const last = (await events(messages, body)).at(-1);
    equal([last.type, last.error?.type], ["error", "api_error"], "the last event");
    equal(last.error.code, "internal_error", "code in the stream");
  }),
  messagesCase("284", "the number of tokens", ALL, null, async (messages, ctx) => {
    const members = { system: "Be brief.", tools: [TOOL] };
    const answer = await messages.completion(A(members));
    const counting = ctx.at(`${MESSAGES}/count_tokens`);
    const counted = await counting.completion(A({ ...members, max_tokens: undefined }));
    equal(counted, { input_tokens: promptTokens(answer) }, "the count");
    await counting.refused(A({ messages: undefined }), 400, null, "messages");
  }),
];
