//! `inpage/prompt-api`: what browsers do at the edges of the Prompt API, with an engine without a model.

import assert from "node:assert/strict";
import { test } from "node:test";
import { InpageError } from "../../www/dist/node/index.js";
import { createLanguageModel } from "../../www/dist/node/prompt_api.js";
import { CONTEXT_TOKENS, fakedModel, rejectsWith } from "./fake_chat.mjs";

/** The text of a stream. */
async function textOf(stream) {
  let text = "";
  for await (const piece of stream) text += piece;
  return text;
}

const contentsOf = ({ messages }) => messages.map(({ role, content }) => `${role}: ${content}`);

test("values that are no messages are texts, and an empty prompt is an empty message", async () => {
  for (const [input, content] of [
    [null, "null"],
    [undefined, "undefined"],
    [{}, "[object Object]"],
    [7, "7"],
    ["", ""],
    [[], ""],
    [[{ role: "user", content: [] }], ""],
    [[{ role: "user", content: null }], "null"],
    [[{ role: "user", content: [{ type: "text", value: 5 }] }], "5"],
    [new Set([{ role: "user", content: "of a set" }]), "of a set"],
  ]) {
    const { model, bodies } = fakedModel([]);
    const session = await model.create();
    assert.equal(await session.prompt(input), "ok");
    assert.deepEqual(contentsOf(bodies[0]), [`user: ${content}`]);
    const other = await model.create();
    await other.append(input);
    const isEmpty = Array.isArray(input) && input.length === 0;
    assert.equal(other.contextUsage, isEmpty ? 0 : 1);
  }
});

test("a system message begins a conversation, wherever it comes from, and stays", async () => {
  const system = { role: "system", content: "Stay." };
  const { model, bodies } = fakedModel([]);
  const session = await model.create();
  // Not an array: a text.
  const first = session.append({ role: "system", content: "x" });
  await assert.rejects(session.append([system]), rejectsWith("TypeError"));
  await first;
  await assert.rejects(session.prompt([system]), rejectsWith("TypeError"));
  const initialPrompts = [{ role: "user", content: "x" }];
  const started = await model.create({ initialPrompts });
  await assert.rejects(started.prompt([system]), rejectsWith("TypeError"));

  const own = await model.create();
  await own.prompt([system, { role: "user", content: "one" }]);
  await own.append(Array(CONTEXT_TOKENS - 2).fill({ role: "user", content: "x" }));
  await own.prompt("last");
  assert.equal(contentsOf(bodies.at(-1))[0], "system: Stay.");
  assert.equal(contentsOf(bodies.at(-1))[1], "user: x");
});

test("a prompt is measured by itself, as the conversation counts it", async () => {
  const { model } = fakedModel([]);
  const initialPrompts = [
    { role: "system", content: "a" },
    { role: "user", content: "b" },
    { role: "assistant", content: "c" },
  ];
  const session = await model.create({ initialPrompts });
  assert.equal(session.contextUsage, 3);
  assert.equal(await session.measureContextUsage(initialPrompts), 3);
  const usage = await session.measureContextUsage("x");
  await session.append("x");
  assert.equal(session.contextUsage, 3 + usage);
  const options = { omitResponseConstraintInput: true };
  await assert.rejects(session.measureContextUsage("x", options), rejectsWith("TypeError"));
});

test("an answer follows a message of the assistant that is no prefix", async () => {
  const { model, bodies } = fakedModel([]);
  const session = await model.create();
  const said = { role: "assistant", content: "So?" };
  await session.prompt([{ role: "user", content: "Hm" }, said]);
  assert.deepEqual(
    [bodies[0].add_generation_prompt, bodies[0].continue_final_message],
    [true, undefined],
  );
});

test("a signal's own reason is what a call rejects with", async () => {
  const { model } = fakedModel([]);
  const session = await model.create();
  for (const call of [
    (signal) => model.create({ signal }),
    (signal) => session.clone({ signal }),
    (signal) => session.prompt("x", { signal }),
    (signal) => session.append("x", { signal }),
    (signal) => session.measureContextUsage("x", { signal }),
    (signal) => textOf(session.promptStreaming("x", { signal })),
  ]) {
    const reason = new Error("mine");
    const controller = new AbortController();
    const calling = call(controller.signal);
    controller.abort(reason);
    await assert.rejects(calling, (error) => error === reason, call.toString());
    await assert.rejects(
      async () => call(controller.signal),
      (error) => error === reason,
    );
  }
  const signal = AbortSignal.abort();
  assert.throws(() => session.promptStreaming("x", { signal }), rejectsWith("AbortError"));
  assert.equal(await session.prompt("x"), "ok");
});

test("the signal of a creation destroys the session later", async () => {
  const { model } = fakedModel([]);
  const controller = new AbortController();
  const session = await model.create({ signal: controller.signal });
  const other = await session.clone();
  const asking = session.prompt("x");
  const reason = new Error("gone");
  controller.abort(reason);
  await assert.rejects(asking, (error) => error === reason);
  await assert.rejects(session.append("x"), (error) => error === reason);
  assert.equal(session.contextUsage, 0);
  assert.equal(await other.prompt("x"), "ok");
});

test("progress is told from 0 to 1, in steps that grow, and not after the end", async () => {
  const events = [];
  let isCreated = false;
  const monitor = (target) => {
    target.ondownloadprogress = (event) => {
      assert.equal(isCreated, false);
      events.push(event);
    };
  };
  const { model } = fakedModel([]);
  await model.create({ monitor });
  isCreated = true;
  assert.deepEqual(
    events.map(({ loaded, total, lengthComputable }) => [loaded, total, lengthComputable]),
    [
      [0, 1, true],
      [1, 1, true],
    ],
  );
  isCreated = false;
  events.length = 0;
  const loading = createLanguageModel({ endpoint: { maxQueue: 5, chatTemplate: "x" } });
  const session = await loading.create({ monitor });
  isCreated = true;
  const parts = events.map(({ loaded }) => loaded);
  assert.deepEqual([parts[0], parts.at(-1)], [0, 1]);
  assert.ok(parts.every((part, index) => index === 0 || part > parts[index - 1]));
  assert.ok(parts.every((part) => Number.isInteger(part * 0x10000)));
  session.destroy();
  const { getEngine } = await import("../../www/dist/node/index.js");
  await (await getEngine({ endpoint: { maxQueue: 5, chatTemplate: "x" } })).dispose();
});

test("an aborted creation tells no progress, and an error of the monitor ends it", async () => {
  const { model } = fakedModel([]);
  for (const at of [0, 1]) {
    const controller = new AbortController();
    const reason = new Error("mine");
    const monitor = (target) =>
      target.addEventListener("downloadprogress", ({ loaded }) => {
        if (loaded === at) controller.abort(reason);
      });
    const creating = model.create({ monitor, signal: controller.signal });
    await assert.rejects(creating, (error) => error === reason);
  }
  const error = new Error("of the monitor");
  const monitor = () => {
    throw error;
  };
  await assert.rejects(model.create({ monitor }), (thrown) => thrown === error);
});

test("expected types and languages are checked", async () => {
  const { model } = fakedModel([]);
  const text = (...languages) => [{ type: "text", languages }];
  assert.equal(await model.availability({ expectedInputs: text("EN", "de-ch") }), "available");
  const wrongTag = { expectedInputs: text("en-abc-invalid") };
  const wrongType = { expectedInputs: [{ type: "soup" }] };
  for (const method of ["availability", "create"]) {
    await assert.rejects(model[method](wrongTag), rejectsWith("RangeError"));
    await assert.rejects(model[method](wrongType), rejectsWith("TypeError"));
  }
  // Tools are called by the session itself.
  const ofTools = {
    expectedInputs: [{ type: "text" }, { type: "tool-response" }],
    expectedOutputs: [{ type: "text" }, { type: "tool-call" }],
  };
  assert.equal(await model.availability(ofTools), "available");
  await model.create(ofTools);
  for (const type of ["image", "audio"]) {
    const options = { expectedOutputs: [{ type }] };
    assert.equal(await model.availability(options), "unavailable");
    await assert.rejects(model.create(options), rejectsWith("NotSupportedError"));
  }
});

test("prompts are answered in the order of the calls, streamed or not", async () => {
  const { model, bodies } = fakedModel([]);
  const session = await model.create();
  const [streamed, whole] = await Promise.all([
    textOf(session.promptStreaming("first")),
    session.prompt("second"),
  ]);
  assert.deepEqual([streamed, whole], ["ok", "ok"]);
  assert.deepEqual(contentsOf(bodies[1]), ["user: first", "assistant: ok", "user: second"]);
});

test("constraints that cannot be met are not supported", async () => {
  const refusal = (param) =>
    new InpageError(400, { code: "invalid_grammar", message: "no", param, type: "x" });
  const { model, bodies } = fakedModel([], {
    refuse: ({ response_format: format, guided_regex: regex, messages }) => {
      if (format?.json_schema.schema.type === "soup") throw refusal("response_format");
      if (regex === "(?=x)") throw refusal("guided_regex");
      if (messages[0].content === "long") throw refusal("messages");
    },
  });
  const session = await model.create();
  const circular = {};
  circular.self = circular;
  for (const responseConstraint of [circular, { type: "soup" }, /(?=x)/]) {
    const asking = session.prompt("x", { responseConstraint });
    await assert.rejects(asking, rejectsWith("NotSupportedError"));
  }
  const long = session.prompt("long", { responseConstraint: {} });
  await assert.rejects(long, rejectsWith("InpageError"));
  // The whole answer matches, so anchors say nothing; an escaped dollar sign is a character. Digits are those of ASCII.
  for (const [regex, sent] of [
    [/^-?\d$/, "-?[0-9]"],
    [/[^\d\s]\W\w+/, "[^0-9\\s][^A-Za-z0-9_][A-Za-z0-9_]+"],
    [/\\d/, "\\\\d"],
    [/a\$/, "a\\$"],
    [/a\\$/, "a\\\\"],
  ]) {
    await session.prompt("x", { responseConstraint: regex });
    assert.equal(bodies.at(-1).guided_regex, sent);
  }
});
