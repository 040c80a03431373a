//! Chat through client libraries against the native server: the official JavaScript client, the AI SDK and LangChain. The
//! libraries besides the first are installed here on demand; without npm's registry their tests are skipped.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { testAiSdk } from "./ai_sdk.mjs";
import { CHAT_TEMPLATE } from "./chat_template.mjs";
import { startEndpoint } from "./endpoint.mjs";
import { installPackages, OPENAI_VERSIONS } from "./packages.mjs";

const MESSAGES = [{ role: "user", content: "Tell me of a fox." }];
const WEATHER = {
  type: "object",
  properties: { city: { enum: ["Rome", "Oslo"] }, days: { enum: [1, 2] } },
  required: ["city", "days"],
  additionalProperties: false,
};

// Before any suite: the tests of the file end when all suites that are known by then have ended.
const isInstalled = await installPackages();

let endpoint;

before(async () => {
  endpoint = await startEndpoint();
  await endpoint.hooks({ switches: { chatTemplate: CHAT_TEMPLATE } });
});
after(() => endpoint?.close());

for (const [name, specifier] of OPENAI_VERSIONS) {
  const isMissing = specifier !== "openai" && !isInstalled;
  const skip = isMissing && "skipped: the packages cannot be installed";
  describe(`${name} for JavaScript`, { skip }, () => {
    let OpenAI;
    before(async () => {
      ({ default: OpenAI } = await import(specifier));
    });
    const client = () => new OpenAI({ baseURL: `${endpoint.origin}/v1`, apiKey: "x" });
    const greedy = { model: "default", messages: MESSAGES, temperature: 0, max_tokens: 12 };

    test("answers whole and streamed", async () => {
      const { chat } = client();
      const whole = await chat.completions.create(greedy);
      const [{ message, finish_reason }] = whole.choices;
      assert.equal(message.role, "assistant");
      assert.ok(message.content.length > 0);
      assert.ok(["stop", "length"].includes(finish_reason));
      let content = "";
      let usage;
      const stream = await chat.completions.create({
        ...greedy,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const chunk of stream) {
        content += chunk.choices[0]?.delta.content ?? "";
        usage = chunk.usage ?? usage;
      }
      assert.equal(content, message.content);
      assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
    });

    test("calls the tool that it must call, whole and streamed", async () => {
      const { chat } = client();
      const request = {
        ...greedy,
        max_tokens: 200,
        tools: [
          { type: "function", function: { name: "weather", parameters: WEATHER, strict: true } },
        ],
        tool_choice: "required",
        parallel_tool_calls: false,
      };
      const [{ message, finish_reason }] = (await chat.completions.create(request)).choices;
      assert.equal(finish_reason, "tool_calls");
      const [call, ...others] = message.tool_calls;
      assert.deepEqual(others, []);
      assert.equal(call.function.name, "weather");
      const { city, days } = JSON.parse(call.function.arguments);
      assert.ok(WEATHER.properties.city.enum.includes(city), city);
      assert.ok(WEATHER.properties.days.enum.includes(days), `${days}`);
      const streamed = await chat.completions.stream(request).finalChatCompletion();
      assert.deepEqual(
        streamed.choices[0].message.tool_calls.map((it) => it.function.arguments),
        [call.function.arguments],
      );
    });

    test("parses what a JSON schema demands", async () => {
      const answer = await client().chat.completions.create({
        ...greedy,
        max_tokens: 200,
        response_format: {
          type: "json_schema",
          json_schema: { name: "weather", schema: WEATHER, strict: true },
        },
      });
      const { city } = JSON.parse(answer.choices[0].message.content);
      assert.ok(WEATHER.properties.city.enum.includes(city), city);
    });
  });
}

const missing = { skip: !isInstalled && "skipped: the packages cannot be installed" };

/** The versions of the AI SDK: its package and those of its providers. */
const AI_SDKS = [
  ["7", "ai", "@ai-sdk/openai-compatible", "@ai-sdk/openai"],
  ["6", "ai-6", "ai-6-openai-compatible", "ai-6-openai"],
];
for (const [version, core, compatible, official] of AI_SDKS) {
  const common = async () => ({
    sdk: await import(core),
    z: (await import("zod")).z,
    baseURL: `${endpoint.origin}/v1`,
  });

  describe(`AI SDK ${version}, openai-compatible`, missing, () => {
    testAiSdk(async () => {
      const { sdk, z, baseURL } = await common();
      const { createOpenAICompatible } = await import(compatible);
      const provider = createOpenAICompatible({
        ...{ name: "inpage", baseURL },
        ...{ supportsStructuredOutputs: true, includeUsage: true },
      });
      return { sdk, z, model: provider.chatModel("default") };
    });
  });

  describe(`AI SDK ${version}, openai.chat`, missing, () => {
    testAiSdk(async () => {
      const { sdk, z, baseURL } = await common();
      const { createOpenAI } = await import(official);
      return { sdk, z, model: createOpenAI({ baseURL, apiKey: "x" }).chat("default") };
    });
  });
}

describe("LangChain", missing, () => {
  test("ChatOpenAI answers, streams and calls a tool", async () => {
    const { ChatOpenAI } = await import("@langchain/openai");
    const model = new ChatOpenAI({
      model: "default",
      apiKey: "x",
      temperature: 0,
      maxTokens: 12,
      maxRetries: 0,
      configuration: { baseURL: `${endpoint.origin}/v1` },
    });
    const { content } = await model.invoke("Tell me of a fox.");
    assert.ok(content.length > 0);
    let streamed = "";
    for await (const chunk of await model.stream("Tell me of a fox.")) streamed += chunk.content;
    assert.equal(streamed, content);
    const caller = new ChatOpenAI({ ...model.lc_kwargs, maxTokens: 200 }).bindTools(
      [{ type: "function", function: { name: "weather", parameters: WEATHER, strict: true } }],
      { tool_choice: "required" },
    );
    const { tool_calls } = await caller.invoke("The weather?");
    assert.equal(tool_calls[0].name, "weather");
    assert.ok(WEATHER.properties.city.enum.includes(tool_calls[0].args.city));
  });

  test("ChatOpenAI knows the error of a prompt that exceeds the context", async () => {
    const { ChatOpenAI } = await import("@langchain/openai");
    const { ContextOverflowError } = await import("@langchain/core/errors");
    for (const useResponsesApi of [false, true]) {
      const model = new ChatOpenAI({
        ...{ model: "default", apiKey: "x", maxRetries: 0, useResponsesApi },
        configuration: { baseURL: `${endpoint.origin}/v1` },
      });
      await assert.rejects(model.invoke("fox ".repeat(9000)), ContextOverflowError);
    }
  });
});
