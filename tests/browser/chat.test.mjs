//! Chat with the real engine on the CPU device in Chromium: `engine.chat.completions.create`, `engine.responses.create`, and the real `openai` SDK through
//! `engine.fetch` and the service worker.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CHAT_TEMPLATE } from "../clients/chat_template.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

describe("chat", { skip: !wasmIsBuilt && "skipped: the wasm module is not built" }, () => {
  let harness;
  let page;
  const greedy = {
    model: "default",
    messages: [{ role: "user", content: "Tell me of a fox." }],
    temperature: 0,
    max_tokens: 12,
  };
  const calling = {
    ...greedy,
    max_tokens: 200,
    tool_choice: "required",
    parallel_tool_calls: false,
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          strict: true,
          parameters: {
            type: "object",
            properties: { city: { enum: ["Rome", "Oslo"] } },
            required: ["city"],
            additionalProperties: false,
          },
        },
      },
    ],
  };

  before(async () => {
    harness = await startHarness();
    page = await harness.open();
    const failure = await page.evaluate(
      (chatTemplate) =>
        caught(async () => {
          window.engine = await inpage.createEngine({ device: "cpu", threads: 1, chatTemplate });
        }),
      CHAT_TEMPLATE,
    );
    assert.equal(failure.message, undefined);
  });
  after(() => harness?.close());

  test("create answers whole and streamed", async () => {
    const { whole, content, reasons } = await page.evaluate(async (body) => {
      const whole = await engine.chat.completions.create(body);
      let content = "";
      const reasons = [];
      for await (const { choices } of await engine.chat.completions.create({
        ...body,
        stream: true,
      })) {
        content += choices[0].delta.content ?? "";
        if (choices[0].finish_reason !== null) reasons.push(choices[0].finish_reason);
      }
      return { whole, content, reasons };
    }, greedy);
    const [{ message, finish_reason }] = whole.choices;
    assert.equal(whole.object, "chat.completion");
    assert.equal(message.role, "assistant");
    assert.ok(message.content.length > 0);
    assert.equal(content, message.content);
    assert.deepEqual(reasons, [finish_reason]);
  });

  test("responses answer whole and streamed", async () => {
    const { whole, text, last } = await page.evaluate(async () => {
      const body = {
        model: "default",
        input: "Tell me of a fox.",
        temperature: 0,
        max_output_tokens: 12,
      };
      const whole = await engine.responses.create(body);
      let text = "";
      let last;
      for await (const event of await engine.responses.create({ ...body, stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta;
        last = event;
      }
      return { whole, text, last };
    });
    const [message] = whole.output;
    assert.ok(text.length > 0);
    assert.equal(message.content[0].text, text);
    assert.equal(last.type, `response.${whole.status}`);
    assert.equal(last.response.output[0].content[0].text, text);
  });

  test("a model without a template says what to do", async () => {
    const failure = await page.evaluate(async (body) => {
      const plain = await inpage.createEngine({ device: "cpu", threads: 1, shared: false });
      try {
        return await caught(() => plain.chat.completions.create(body));
      } finally {
        await plain.dispose();
      }
    }, greedy);
    assert.equal(failure.status, 400);
    assert.match(failure.message, /chatTemplate/);
  });

  for (const door of ["engine.fetch", "the service worker"]) {
    test(`the openai SDK chats and calls tools through ${door}`, async () => {
      const { content, call, reason } = await page.evaluate(
        async ({ door, greedy, calling }) => {
          if (door !== "engine.fetch") await inpage.serveFromPage(engine).ready;
          const openai = client({
            fetch: door === "engine.fetch" ? engine.fetch : inpage.servedFetch,
          });
          const { choices } = await openai.chat.completions.create(greedy);
          const stream = openai.chat.completions.stream(calling);
          const final = await stream.finalChatCompletion();
          return {
            content: choices[0].message.content,
            call: final.choices[0].message.tool_calls[0].function,
            reason: final.choices[0].finish_reason,
          };
        },
        { door, greedy, calling },
      );
      assert.ok(content.length > 0);
      assert.equal(call.name, "weather");
      assert.ok(["Rome", "Oslo"].includes(JSON.parse(call.arguments).city), call.arguments);
      assert.equal(reason, "tool_calls");
    });
  }
});
