//! Chat with the real engine on the CPU device in Chromium: `engine.chat.completions.create`, `engine.responses.create`, `engine.messages`, and the real `openai` SDK and AI
//! SDK through `engine.fetch` and the service worker. Without npm's registry the AI SDK's tests are skipped.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { build } from "esbuild";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { CHAT_TEMPLATE } from "../clients/chat_template.mjs";
import { installPackages } from "../clients/packages.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const hasAiSdk = wasmIsBuilt && (await installPackages());

/** The AI SDK and its provider as one module for pages. */
async function bundleAiSdk(outfile) {
  const contents = `export * from "ai"; export * from "@ai-sdk/openai-compatible";`;
  await build({
    stdin: { contents, resolveDir: join(root, "tests/clients") },
    ...{ bundle: true, format: "esm", platform: "browser", outfile, logLevel: "error" },
  });
}

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
    const aiSdk = join(temporaryFolder("inpage-ai-sdk-"), "ai.js");
    if (hasAiSdk) await bundleAiSdk(aiSdk);
    harness = await startHarness({ mounts: hasAiSdk ? { "/ai.js": aiSdk } : {} });
    page = await harness.open();
    const failure = await page.evaluate(
      (chatTemplate) =>
        caught(async () => {
          window.engine = await inpage.createEngine({
            device: "cpu",
            threads: 1,
            endpoint: { chatTemplate },
          });
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

  test("messages in Anthropic's form answer whole and streamed, and count tokens", async () => {
    const { whole, text, last, counted, failure } = await page.evaluate(async () => {
      const body = {
        model: "default",
        messages: [{ role: "user", content: "Tell me of a fox." }],
        temperature: 0,
        max_tokens: 12,
      };
      const whole = await engine.messages.create(body);
      let text = "";
      let last;
      for await (const event of engine.messages.create({ ...body, stream: true })) {
        if (event.type === "content_block_delta") text += event.delta.text;
        last = event;
      }
      const counted = await engine.messages.countTokens({ ...body, max_tokens: undefined });
      const failure = await caught(() => engine.messages.create({ ...body, temperature: 2 }));
      return { whole, text, last, counted, failure };
    });
    assert.ok(text.length > 0);
    assert.equal(whole.content[0].text, text);
    assert.deepEqual(last, { type: "message_stop" });
    const { input_tokens, cache_read_input_tokens } = whole.usage;
    assert.deepEqual(counted, { input_tokens: input_tokens + cache_read_input_tokens });
    assert.equal(failure.code, "out_of_range");
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

    test(`the AI SDK chats, streams and calls tools through ${door}`, {
      skip: !hasAiSdk && "skipped: the packages cannot be installed",
    }, async () => {
      const { text, streamed, input, finishReason } = await page.evaluate(
        async ({ door, parameters }) => {
          if (door !== "engine.fetch") await inpage.serveFromPage(engine).ready;
          const sdk = await import("/ai.js");
          const provider = sdk.createOpenAICompatible({
            name: "inpage",
            baseURL: `${location.origin}/v1`,
            fetch: door === "engine.fetch" ? engine.fetch : inpage.servedFetch,
          });
          const model = provider.chatModel("default");
          const greedy = { model, prompt: "Tell me of a fox.", temperature: 0 };
          const { text } = await sdk.generateText({ ...greedy, maxOutputTokens: 12 });
          let streamed = "";
          const stream = sdk.streamText({ ...greedy, maxOutputTokens: 12 });
          for await (const part of stream.textStream) streamed += part;
          const inputSchema = sdk.jsonSchema(parameters);
          const { toolCalls, finishReason } = await sdk.generateText({
            ...{ ...greedy, maxOutputTokens: 200, toolChoice: "required" },
            tools: { weather: sdk.tool({ inputSchema, strict: true }) },
            providerOptions: { inpage: { parallel_tool_calls: false } },
          });
          return { text, streamed, input: toolCalls[0].input, finishReason };
        },
        { door, parameters: calling.tools[0].function.parameters },
      );
      assert.ok(text.length > 0);
      assert.equal(streamed, text);
      assert.equal(finishReason, "tool-calls");
      assert.ok(["Rome", "Oslo"].includes(input.city), JSON.stringify(input));
    });
  }
});
