//! The cases of Open Responses' compliance test (openresponses.org/compliance) that need no stored state, against a server with
//! SmolLM2: node open_responses.mjs ORIGIN [ORIGIN_WITH_IMAGES]
//! The cases have its names and conditions; requests and checks are written here. Decoding is greedy, and calls are forced: this
//! model rambles at a temperature of 1, and answers in words where it may choose. What a response has to look like in detail is
//! checked in `tests/endpoint/open_responses.rs`.

import assert from "node:assert/strict";
import { png } from "../../browser/image_files.mjs";

const [, , origin, imageOrigin] = process.argv;

const COMPACT = "responses/compact";

const said = (role, content) => ({ type: "message", role, content });
const QUESTION = [said("user", "What is the weather in Oslo right now? Look it up.")];
const WEATHER = {
  type: "function",
  name: "get_weather",
  description: "Reports the weather of a place right now.",
  parameters: {
    type: "object",
    properties: { location: { type: "string", description: "A city and its country." } },
    required: ["location"],
  },
};
const red = png({ width: 8, height: 8, data: Buffer.alloc(8 * 8 * 3).fill("ff0000", "hex") });
const RED = `data:image/png;base64,${red.toString("base64")}`;

/** The members of every response, whatever its state. */
const MEMBERS =
  `id object created_at completed_at status incomplete_details model previous_response_id instructions
  output error tools tool_choice truncation parallel_tool_calls text top_p presence_penalty frequency_penalty top_logprobs
  temperature reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier
  prompt_cache_key`.split(/\s+/);

function checkResponse(response) {
  for (const name of MEMBERS) assert.ok(name in response, `${name} is missing`);
  assert.equal(response.object, "response");
}

async function ask(members, base = origin, route = "responses") {
  const answer = await fetch(`${base}/v1/${route}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer unused" },
    body: JSON.stringify({
      model: "default",
      ...(route === "responses" && { temperature: 0 }),
      ...members,
    }),
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
  return answer;
}

async function whole(members, base) {
  const response = await (await ask(members, base)).json();
  checkResponse(response);
  assert.ok(response.output.length > 0, "there is no output");
  return response;
}

/** The events of a stream, and the response of the last one. */
async function streamed(members) {
  const answer = await ask({ ...members, stream: true });
  assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
  const frames = (await answer.text()).split("\n\n").filter((frame) => frame.includes("data: "));
  assert.equal(frames.pop(), "data: [DONE]");
  const events = frames.map((frame) => {
    const [, type, json] = /^event: (\S+)\ndata: (.*)$/.exec(frame);
    const event = JSON.parse(json);
    assert.equal(event.type, type);
    return event;
  });
  for (const [index, event] of events.entries()) assert.equal(event.sequence_number, index);
  const { response } = events.at(-1);
  checkResponse(response);
  return { events, response, types: events.map(({ type }) => type) };
}

const isComplete = ({ status }) => assert.equal(status, "completed");

function checkCall(call) {
  assert.equal(call?.type, "function_call");
  assert.equal(call.name, WEATHER.name);
  assert.equal(typeof JSON.parse(call.arguments).location, "string");
}
const callIn = ({ output }) => output.find(({ type }) => type === "function_call");

const CASES = {
  "basic-response": async () =>
    isComplete(await whole({ input: [said("user", "Greet me with three words.")] })),

  "streaming-response": async () => {
    const { response, types } = await streamed({ input: [said("user", "Count to five.")] });
    isComplete(response);
    assert.deepEqual(types.slice(0, 2), ["response.created", "response.in_progress"]);
    assert.equal(types.at(-1), "response.completed");
    for (const type of ["output_item.added", "content_part.added", "output_text.delta"]) {
      assert.ok(types.includes(`response.${type}`), type);
    }
  },

  "system-prompt": async () => {
    const system = said("system", "You are a polite waiter.");
    isComplete(await whole({ input: [system, said("user", "Say good morning.")] }));
  },

  "tool-calling": async () =>
    checkCall(callIn(await whole({ input: QUESTION, tools: [WEATHER], tool_choice: "required" }))),

  "tool-calling-streaming": async () => {
    const { events, response, types } = await streamed({
      input: QUESTION,
      tools: [WEATHER],
      tool_choice: "required",
    });
    checkCall(callIn(response));
    for (const type of ["output_item.added", "output_item.done"]) {
      const items = events.filter((event) => event.type === `response.${type}`);
      assert.ok(
        items.some(({ item }) => item.type === "function_call"),
        type,
      );
    }
    const deltas = events.filter(({ type }) => type === "response.function_call_arguments.delta");
    const done = events.find(({ type }) => type === "response.function_call_arguments.done");
    assert.ok(deltas.length > 0 && types.includes("response.function_call_arguments.done"));
    assert.equal(deltas.map(({ delta }) => delta).join(""), done.arguments);
  },

  // A model of random weights does not stop by itself.
  "image-input": async () => {
    const text = { type: "input_text", text: "What is this?" };
    const content = [text, { type: "input_image", image_url: RED }];
    const response = await whole({ input: [said("user", content)] }, imageOrigin);
    assert.ok(["completed", "incomplete"].includes(response.status), response.status);
    assert.ok(response.usage.input_tokens > 4);
  },

  "multi-turn": async () => {
    const past = [said("user", "I am called Ada."), said("assistant", "Good day, Ada!")];
    isComplete(await whole({ input: [...past, said("user", "What am I called?")] }));
  },

  "assistant-phase": async () => {
    const past = [
      said("user", "Look up when the library opens."),
      { ...said("assistant", "I look into the plan."), phase: "commentary" },
      { ...said("assistant", "It opens at nine."), phase: "final_answer" },
    ];
    isComplete(await whole({ input: [...past, said("user", "Thank you. When was that?")] }));
  },

  "response-output-phase-schema": async () => {
    const response = await whole({ input: [said("user", "Greet me with three words.")] });
    for (const { phase } of response.output) {
      assert.ok([undefined, null, "commentary", "final_answer"].includes(phase), phase);
    }
  },

  "compact-response": async () => {
    const input = [
      said("user", "We meet on Friday in Oslo, and Ada brings the maps."),
      said("assistant", "Noted: Friday, in Oslo, with Ada's maps."),
    ];
    const request = { input, prompt_cache_key: "meeting" };
    const compacted = await (await ask(request, origin, COMPACT)).json();
    assert.equal(compacted.object, "response.compaction");
    assert.ok(Number.isInteger(compacted.created_at));
    const { total_tokens, input_tokens, output_tokens } = compacted.usage;
    assert.equal(total_tokens, input_tokens + output_tokens);
    assert.deepEqual(
      compacted.output.map(({ type }) => type),
      ["message", "compaction"],
    );
    const [message, { id, encrypted_content }] = compacted.output;
    assert.deepEqual([message.role, message.status], ["user", "completed"]);
    assert.equal(message.content[0].text, input[0].content);
    assert.match(id, /^cmp_/);
    const { summary } = JSON.parse(Buffer.from(encrypted_content, "base64").toString());
    assert.match(summary, /Oslo|Friday|Ada/);
    const question = said("user", "Where do we meet?");
    const limit = { max_output_tokens: 200 };
    // The model may need more tokens than that.
    await whole({ ...limit, input: [...compacted.output, question] });
  },

  "compact-missing-model": async () => {
    const request = { model: undefined, input: [said("user", "Compact this.")] };
    await assert.rejects(ask(request, origin, COMPACT), /^Error: 400: /);
  },
};

let failures = 0;
for (const [name, run] of Object.entries(CASES)) {
  if (name === "image-input" && !imageOrigin) continue;
  const start = performance.now();
  const error = await run().then(
    () => undefined,
    (reason) => reason,
  );
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  console.log(error ? `FAILED ${name}: ${error.stack}` : `ok ${name}, ${seconds} s`);
  if (error) failures += 1;
}
assert.equal(failures, 0, `${failures} cases failed`);
