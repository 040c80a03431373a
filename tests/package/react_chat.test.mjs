//! `useChat` of `inpage/react` with a fake engine: turns with calls of tools. `react.test.mjs` has the hook in a page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, grown } from "../../www/dist/api/growing_message.js";
import { answerTurn } from "../../www/dist/react/turn.js";

const call = (index, id, name, text) => ({
  ...{ index, id, type: "function", function: { name, arguments: text } },
});

test("a message grows by text, reasoning and calls", () => {
  const deltas = [
    { role: "assistant", content: "" },
    { reasoning_content: "h" },
    { reasoning_content: "m" },
    { content: "a" },
    { tool_calls: [call(0, "c1", "f", "")] },
    { tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] },
    { tool_calls: [{ index: 0, function: { arguments: "1}" } }, call(1, "c2", "g", "{}")] },
  ];
  assert.deepEqual(deltas.reduce(grown, EMPTY), {
    ...{ role: "assistant", content: "a", reasoning_content: "hm" },
    tool_calls: [
      { id: "c1", type: "function", function: { name: "f", arguments: '{"x":1}' } },
      { id: "c2", type: "function", function: { name: "g", arguments: "{}" } },
    ],
  });
});

/** An engine that gives these answers, one after the other, and the messages that it was asked with. */
function faked(answers) {
  const asked = [];
  const create = async ({ messages }) => {
    asked.push(messages);
    const { delta, finish = "stop" } = answers[asked.length - 1];
    return [{ choices: [{ delta, finish_reason: finish }] }, { choices: [] }].values();
  };
  return { get: async () => ({ chat: { completions: { create } } }), asked };
}

const user = { role: "user", content: "q" };
const calling = (text) => ({ delta: { tool_calls: [call(0, "c1", "f", text)] } });
const { signal } = new AbortController();

test("results go back to the model until it answers", async () => {
  const { get, asked } = faked([calling('{"x":1}'), calling("{"), { delta: { content: "done" } }]);
  const calls = [];
  const onToolCall = (given) => {
    calls.push(given);
    return { y: 2 };
  };
  const shown = [];
  const change = (messages) => shown.push(messages.length);
  const last = await answerTurn(get, { onToolCall }, undefined, [user], change, signal);
  assert.deepEqual(last, { role: "assistant", content: "done" });
  assert.deepEqual(calls, [{ id: "c1", name: "f", arguments: { x: 1 } }]);
  const results = asked[2].filter(({ role }) => role === "tool");
  assert.deepEqual(results[0], { role: "tool", tool_call_id: "c1", content: '{"y":2}' });
  // Arguments that are no JSON: the model is told.
  assert.match(results[1].content, /JSON/);
  assert.deepEqual(shown, [2, 3, 4, 5, 6]);
});

test("a turn ends at its limit, with a call that is cut, and without a function for calls", async () => {
  const cut = { ...calling('{"x"'), finish: "length" };
  for (const [answers, options, requests] of [
    [[calling("{}"), calling("{}"), calling("{}")], { onToolCall: () => "r", maxSteps: 2 }, 2],
    [[cut, calling("{}")], { onToolCall: () => "r" }, 1],
    [[calling("{}"), calling("{}")], {}, 1],
  ]) {
    const { get, asked } = faked(answers);
    const last = await answerTurn(get, options, undefined, [user], () => {}, signal);
    assert.equal(last.tool_calls.length, 1);
    assert.equal(asked.length, requests);
  }
});

test("a call is forced once", async () => {
  const choices = [];
  const answers = [calling("{}"), { delta: { content: "done" } }];
  const create = async ({ tool_choice }) => {
    choices.push(tool_choice);
    const { delta } = answers[choices.length - 1];
    return [{ choices: [{ delta, finish_reason: "stop" }] }].values();
  };
  const get = async () => ({ chat: { completions: { create } } });
  const options = { body: { tool_choice: "required" }, onToolCall: () => "r" };
  await answerTurn(get, options, undefined, [user], () => {}, signal);
  assert.deepEqual(choices, ["required", "auto"]);
});

test("an error of a tool is told to the model, and one of the engine is thrown", async () => {
  const { get, asked } = faked([calling("{}"), { delta: { content: "sorry" } }]);
  const onToolCall = () => {
    throw new Error("no network");
  };
  await answerTurn(get, { onToolCall }, undefined, [user], () => {}, signal);
  assert.equal(asked[1].at(-1).content, "no network");
  const failing = async () => {
    throw new Error("no model");
  };
  const turn = answerTurn(failing, {}, undefined, [user], () => {}, signal);
  await assert.rejects(turn, /no model/);
});
