//! M. Responses: fields, items, answers, events (specification 20).

import { HERMES, REASONING, rendered, user } from "../chat.mjs";
import { equal, matches, ok, valid } from "../check.mjs";
import { FORCE } from "../context.mjs";
import { ALL } from "../doors.mjs";
import { events, lasting, Q, RESPONSES, responsesCase, textOf } from "../responses.mjs";

const CITY = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] } },
  required: ["city"],
  additionalProperties: false,
};
const TOOL = { type: "function", name: "get_weather", parameters: CITY, strict: true };
const ONE_CALL = {
  tool_choice: "required",
  parallel_tool_calls: false,
  max_output_tokens: 200,
  seed: 1,
};
const CALL = { type: "function_call", call_id: "c1", name: "get_weather", arguments: "{}" };
const OUTPUT = { type: "function_call_output", call_id: "c1", output: "sunny" };
const GREEDY = { temperature: 0 };
const FOX = "The quick brown fox";

/** The greedy text after a prompt, and its number of tokens. */
async function after(ctx, prompt) {
  const body = { model: "default", prompt, max_tokens: 8, temperature: 0 };
  const { choices, usage } = await ctx.completion(body);
  return { text: choices[0].text, prompt_tokens: usage.prompt_tokens };
}

/** Q + `members` must have the prompt that T makes of `messages`. */
async function hasMessages(responses, ctx, members, messages, what) {
  const answer = await responses.completion(Q({ ...GREEDY, ...members }));
  const { text, prompt_tokens } = await after(ctx, rendered(messages));
  equal(answer.usage.input_tokens, prompt_tokens, `${what}: input_tokens`);
  equal(textOf(answer), text, `${what}: the text`);
}

export default [
  responsesCase("221", "the route of responses", ALL, null, async (responses, ctx) => {
    const paths = [RESPONSES, "/openai/v1/responses", `${RESPONSES}/?trace=1`];
    const texts = [];
    for (const path of paths) texts.push(textOf(await ctx.at(path).completion(Q(GREEDY))));
    equal(texts, Array(3).fill(texts[0]), "texts");
    const { status, headers } = await responses.request(RESPONSES, { method: "GET" });
    equal(status, 405, "status of GET");
    matches(headers.get("allow"), /POST/, "Allow");
  }),
  responsesCase("222", "the object of a response", ALL, null, async (responses) => {
    const first = await responses.completion(Q());
    matches(first.id, /^resp_[A-Za-z0-9]{24,}$/, "id");
    equal(first.object, "response", "object");
    ok(Math.abs(first.created_at - Date.now() / 1000) < 10, "created_at", first.created_at);
    ok(["completed", "incomplete"].includes(first.status), "status", first.status);
    equal([first.error, first.store, first.background], [null, false, false], "fixed members");
    equal(first.previous_response_id, null, "previous_response_id");
    const { input_tokens, output_tokens, total_tokens, ...details } = first.usage;
    equal(input_tokens + output_tokens, total_tokens, "total_tokens");
    ok(Number.isInteger(details.input_tokens_details.cached_tokens), "cached_tokens", details);
    equal(details.output_tokens_details, { reasoning_tokens: 0 }, "reasoning_tokens");
    const [message] = first.output;
    matches(message.id, /^msg_/, "id of the message");
    equal([message.type, message.role], ["message", "assistant"], "type and role");
    equal(message.content[0].annotations, [], "annotations");
    const second = await responses.completion(Q());
    ok(second.id !== first.id, "another id");
  }),
  responsesCase("223", "what is repeated of the request", ALL, null, async (responses) => {
    const members = {
      instructions: "Be brief.",
      metadata: { a: "b" },
      max_tool_calls: 3,
      parallel_tool_calls: false,
      prompt_cache_key: "k",
      safety_identifier: "s",
      temperature: 0.5,
      top_p: 0.9,
      user: "u",
    };
    const answer = await responses.completion(Q(members));
    for (const [name, value] of Object.entries(members)) equal(answer[name], value, name);
    const bare = await responses.completion(Q());
    equal([bare.instructions, bare.metadata, bare.tools], [null, {}, []], "without them");
  }),
  responsesCase("224", "missing and wrong fields", ALL, null, async (responses) => {
    for (const name of ["model", "input"]) {
      await responses.refused(Q({ [name]: undefined }), 400, "missing_required_parameter", name);
    }
    await responses.refused(Q({ input: [] }), 400, "invalid_value", "input");
    const wrong = {
      input: 5,
      instructions: 1,
      tools: {},
      text: "x",
      reasoning: "high",
      metadata: [],
    };
    for (const [name, value] of Object.entries(wrong)) {
      await responses.refused(Q({ [name]: value }), 400, "invalid_type", name);
    }
  }),
  responsesCase("225", "numbers out of range", ALL, null, async (responses) => {
    const wrong = { temperature: 2.1, top_p: -0.1, max_output_tokens: -1 };
    for (const [name, value] of Object.entries(wrong)) {
      await responses.refused(Q({ [name]: value }), 400, "out_of_range", name);
    }
    const include = ["message.output_text.logprobs"];
    await responses.refused(Q({ include, top_logprobs: 21 }), 400, "out_of_range", "top_logprobs");
  }),
  responsesCase("226", "what needs a server is refused by name", ALL, null, async (responses) => {
    const refused = {
      store: true,
      background: true,
      previous_response_id: "resp_x",
      conversation: "conv_x",
      prompt: { id: "pmpt_x" },
      truncation: "auto",
    };
    for (const [name, value] of Object.entries(refused)) {
      await responses.refused(Q({ [name]: value }), 400, "unsupported_parameter", name);
    }
    await responses.refused(
      Q({ tools: [{ type: "web_search" }] }),
      400,
      "unsupported_parameter",
      "tools",
    );
    await responses.completion(Q({ store: false, background: false, previous_response_id: null }));
  }),
  responsesCase("227", "text and messages", ALL, null, async (responses, ctx) => {
    const asked = "Tell me of a fox.";
    await hasMessages(responses, ctx, {}, [user(asked)], "a string");
    const parts = [
      { type: "input_text", text: "Tell me" },
      { type: "input_text", text: "of a fox." },
    ];
    const input = [user(asked), { type: "message", role: "assistant", content: "No." }];
    await hasMessages(
      responses,
      ctx,
      { input },
      [user(asked), { role: "assistant", content: "No." }],
      "messages",
    );
    await hasMessages(
      responses,
      ctx,
      { input: [user(parts)] },
      [user("Tell me\nof a fox.")],
      "parts",
    );
    const system = { role: "system", content: "Be brief." };
    await hasMessages(
      responses,
      ctx,
      { instructions: "Be brief." },
      [system, user(asked)],
      "instructions",
    );
  }),
  responsesCase("228", "calls and their outputs", ALL, null, async (responses) => {
    const input = [user("Weather?"), CALL, OUTPUT];
    await responses.completion(Q({ input, tools: [TOOL], tool_choice: "none" }));
    await responses.refused(Q({ input: [user("x"), OUTPUT] }), 400, "invalid_value", "input");
  }),
  responsesCase("229", "items that are not supported", ALL, null, async (responses) => {
    const image = { type: "input_image", image_url: "data:image/png;base64,AAAA" };
    for (const item of [user([image]), { type: "item_reference", id: "msg_x" }]) {
      await responses.refused(Q({ input: [item] }), 400, "unsupported_parameter", "input");
    }
    for (const item of [5, { type: "nonsense" }, { role: "king", content: "x" }]) {
      await responses.refused(Q({ input: [item] }), 400, null, "input");
    }
  }),
  responsesCase("230", "special tokens in items are text", ALL, null, async (responses, ctx) => {
    const input = "<|im_end|>";
    const { usage } = await responses.completion(Q({ input }));
    const chat = ctx.at("/v1/chat/completions");
    const same = await chat.completion({
      model: "default",
      messages: [user(input)],
      max_tokens: 1,
    });
    equal(usage.input_tokens, same.usage.prompt_tokens, "tokens as in chat");
  }),
  responsesCase("231", "length and end", ALL, null, async (responses) => {
    const cut = await responses.completion(Q({ max_output_tokens: 3, ignore_eos: true }));
    equal(
      [cut.status, cut.incomplete_details],
      ["incomplete", { reason: "max_output_tokens" }],
      "cut",
    );
    equal(cut.output.at(-1).status, "incomplete", "status of the last item");
    equal(cut.usage.output_tokens, 3, "output_tokens");
    const ended = await responses.completion(
      Q({ ...FORCE(FOX), max_tokens: undefined, max_output_tokens: 60 }),
    );
    equal([ended.status, ended.incomplete_details], ["completed", null], "ended");
    equal(textOf(ended), FOX, "text");
    ok(ended.completed_at >= ended.created_at, "completed_at", ended.completed_at);
  }),
  responsesCase("232", "a prompt that exceeds the context", ALL, null, async (responses) => {
    const input = "The fox ran. ".repeat(4000);
    await responses.refused(Q({ input }), 400, "context_length_exceeded", "input");
  }),
  responsesCase("233", "text that satisfies a schema", ALL, null, async (responses) => {
    const format = { type: "json_schema", name: "city", schema: CITY, strict: true };
    const body = Q({ text: { format }, max_output_tokens: 100, temperature: 1, seed: 1 });
    const answer = await responses.completion(body);
    valid(JSON.parse(textOf(answer)), CITY, "the text");
    await responses.refused(Q({ text: { format: { type: "xml" } } }), 400, null, "text");
  }),
  responsesCase("234", "a call that must be made", ALL, HERMES, async (responses) => {
    const body = Q({ tools: [TOOL], ...ONE_CALL });
    const { output, status } = await responses.completion(body);
    equal(status, "completed", "status");
    const call = output.find(({ type }) => type === "function_call");
    equal(call.name, "get_weather", "name");
    matches(call.call_id, /^call_/, "call_id");
    matches(call.id, /^fc_/, "id");
    valid(JSON.parse(call.arguments), CITY, "arguments");
  }),
  responsesCase("235", "reasoning is an item", ALL, REASONING, async (responses) => {
    const grammar = { type: "regex", value: "so</think>well" };
    const body = Q({
      max_output_tokens: 60,
      temperature: 0,
      include: ["reasoning.encrypted_content"],
    });
    const free = await responses.completion(body);
    equal(free.output[0].type, "reasoning", "the first item");
    equal(free.output[0].summary, [], "summary");
    ok(free.usage.output_tokens_details.reasoning_tokens > 0, "reasoning_tokens", free.usage);
    matches(free.output[0].encrypted_content, /^inpage:/, "encrypted_content");
    // A constraint makes all of it text.
    const bound = await responses.completion(Q({ max_output_tokens: 60, grammar }));
    equal(textOf(bound), "so</think>well", "constrained text");
  }),
  responsesCase(
    "236",
    "log-probabilities where they are included",
    ALL,
    null,
    async (responses) => {
      const include = ["message.output_text.logprobs"];
      const answer = await responses.completion(Q({ include, top_logprobs: 2, ignore_eos: true }));
      const { logprobs } = answer.output[0].content[0];
      equal(logprobs.length, answer.usage.output_tokens, "entries");
      for (const { logprob, bytes, top_logprobs } of logprobs) {
        ok(logprob <= 0 && Array.isArray(bytes), "logprob and bytes", [logprob, bytes]);
        equal(top_logprobs.length, 2, "alternatives");
      }
      equal((await responses.completion(Q())).output[0].content[0].logprobs, [], "without");
      await responses.refused(Q({ top_logprobs: 2 }), 400, null, "top_logprobs");
      await responses.refused(Q({ include: ["nonsense"] }), 400, "invalid_value", "include");
    },
  ),
  responsesCase("237", "the events of a message", ALL, null, async (responses) => {
    const all = await events(responses, Q({ ...GREEDY, ignore_eos: true }));
    const types = all.map(({ type }) => type.replace(/^response\./, ""));
    const deltas = types.filter((type) => type === "output_text.delta");
    equal(
      types,
      [
        ...["created", "in_progress", "output_item.added", "content_part.added"],
        ...deltas,
        ...["output_text.done", "content_part.done", "output_item.done", "incomplete"],
      ],
      "types",
    );
    equal(all[0].response.output, [], "output of the first event");
    const joined = all.filter(({ type }) => type === "response.output_text.delta");
    const text = joined.map(({ delta }) => delta).join("");
    equal(
      all.find(({ type }) => type === "response.output_text.done").text,
      text,
      "the whole text",
    );
    equal(textOf(all.at(-1).response), text, "the text of the response");
  }),
  responsesCase("238", "the last event is the whole response", ALL, HERMES, async (responses) => {
    for (const members of [
      { temperature: 1, seed: 7 },
      { tools: [TOOL], ...ONE_CALL },
    ]) {
      const whole = await responses.completion(Q(members));
      const all = await events(responses, Q(members));
      const last = all.at(-1).response;
      equal(lasting(last), lasting(whole), "the response");
      const items = all.filter(({ type }) => type === "response.output_item.done");
      equal(
        items.map(({ item }) => item),
        last.output,
        "the items",
      );
    }
  }),
  responsesCase("239", "the events of a call", ALL, HERMES, async (responses) => {
    const body = Q({ tools: [TOOL], ...ONE_CALL });
    const all = await events(responses, body);
    const of = (type) =>
      all.filter((event) => event.type === `response.function_call_arguments.${type}`);
    const [done] = of("done");
    equal(of("done").length, 1, "one call");
    const deltas = of("delta");
    equal(deltas.map(({ delta }) => delta).join(""), done.arguments, "arguments");
    ok(
      deltas.every(({ item_id }) => item_id === done.item_id),
      "ids of the item",
    );
    const added = all.find(({ item }) => item?.type === "function_call");
    equal([added.item.id, added.item.arguments], [done.item_id, ""], "the item at its beginning");
  }),
  responsesCase("240", "a failure while a response is written", ALL, null, async (responses) => {
    const body = Q({ max_output_tokens: 200, ignore_eos: true });
    await responses.hooks({ failAfterTokens: 3 });
    const plain = await responses.refused(body, 500, "internal_error", null);
    equal(plain.headers.get("x-should-retry"), "false", "x-should-retry");
    await responses.hooks({ failAfterTokens: 3 });
    const all = await events(responses, body);
    const [error, failed] = all.slice(-2);
    equal([error.type, error.code], ["error", "internal_error"], "the event before the last");
    equal(error.error.code, "internal_error", "its error object");
    equal(failed.type, "response.failed", "the last event");
    equal([failed.response.status, failed.response.error.code], ["failed", "internal_error"], "it");
  }),
  responsesCase("241", "the official client", ALL, null, async (responses, ctx) => {
    const client = ctx.client();
    const body = Q(GREEDY);
    const whole = await client.responses.create(body);
    equal(whole.output_text, textOf(await responses.completion(body)), "output_text");
    let text = "";
    for await (const event of await client.responses.create({ ...body, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    equal(text, whole.output_text, "streamed");
  }),
  responsesCase("250", "a compacted conversation", ALL, null, async (responses, ctx) => {
    const compact = ctx.at(`${RESPONSES}/compact`);
    const said = { role: "assistant", content: "The fox ran home." };
    const body = { model: "default", input: [user("Tell me of a fox."), said] };
    const { id, object, output, usage } = await compact.completion(body);
    matches(id, /^resp_[A-Za-z0-9]{24,}$/, "id");
    equal(object, "response.compaction", "object");
    equal(
      output.map(({ type, role }) => role ?? type),
      ["user", "compaction"],
      "items",
    );
    matches(output[1].id, /^cmp_/, "id of the compaction");
    ok(usage.output_tokens > 0 && usage.output_tokens <= 2048, "output_tokens", usage);
    const next = (compaction) => Q({ input: [output[0], compaction, user("And then?")] });
    await responses.completion(next(output[1]));
    const damaged = { ...output[1], encrypted_content: "gAAAAABpM0Yj" };
    await responses.refused(next(damaged), 400, "invalid_value", "input");
    await compact.refused(
      { ...body, model: undefined },
      400,
      "missing_required_parameter",
      "model",
    );
    const stored = { ...body, previous_response_id: "resp_1" };
    await compact.refused(stored, 400, "unsupported_parameter", "previous_response_id");
  }),
];
