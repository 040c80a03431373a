//! The AI SDK against the endpoint, in one of its versions: what its tests have in common.

import assert from "node:assert/strict";
import { test } from "node:test";

const CITIES = ["Rome", "Oslo"];
const PROMPT = "Tell me of a fox.";
const greedy = { prompt: PROMPT, temperature: 0, maxOutputTokens: 12 };
const long = { ...greedy, maxOutputTokens: 200 };
/** Options by the provider's name. A small model does not stop calling by itself. */
const ONE_CALL = { openai: { parallelToolCalls: false }, inpage: { parallel_tool_calls: false } };

/** Tests of one provider. `load()` resolves to `{ sdk, z, model }`: the package `ai`, zod, and the provider's model. */
export function testAiSdk(load) {
  test("generates and streams text", async () => {
    const { sdk, model } = await load();
    const { text, usage, finishReason } = await sdk.generateText({ model, ...greedy });
    assert.ok(text.length > 0);
    assert.ok(usage.inputTokens > 0);
    assert.ok(usage.outputTokens > 0 && usage.outputTokens <= 12);
    assert.ok(["stop", "length"].includes(finishReason));
    let streamed = "";
    const stream = sdk.streamText({ model, ...greedy });
    for await (const part of stream.textStream) streamed += part;
    assert.equal(streamed, text);
    assert.equal((await stream.usage).outputTokens, usage.outputTokens);
  });

  test("generates an object", async () => {
    const { sdk, model, z } = await load();
    const days = z.union([z.literal(1), z.literal(2)]);
    const schema = z.object({ city: z.enum(CITIES), days });
    const { output } = await sdk.generateText({
      ...{ model, ...long },
      output: sdk.Output.object({ schema }),
    });
    assert.ok(schema.safeParse(output).success, JSON.stringify(output));
  });

  test("calls a tool, whole and streamed", async () => {
    const { sdk, model, z } = await load();
    for (const call of [sdk.generateText, sdk.streamText]) {
      const asked = [];
      const tool = sdk.tool({
        description: "The weather",
        inputSchema: z.object({ city: z.enum(CITIES) }),
        strict: true,
        execute: async (input) => {
          asked.push(input);
          return "sunny";
        },
      });
      const result = await call({
        ...{ model, ...long, toolChoice: "required", tools: { weather: tool } },
        providerOptions: ONE_CALL,
      });
      assert.equal(await result.finishReason, "tool-calls");
      assert.equal(asked.length, 1);
      assert.ok(CITIES.includes(asked[0].city), asked[0].city);
    }
  });

  test("answers after the result of a tool", async () => {
    const { sdk, model } = await load();
    const call = { toolCallId: "call_1", toolName: "weather" };
    const { text } = await sdk.generateText({
      ...{ model, temperature: 0, maxOutputTokens: 4 },
      messages: [
        { role: "user", content: "The weather?" },
        {
          role: "assistant",
          content: [{ type: "tool-call", ...call, input: { city: "Rome" } }],
        },
        {
          role: "tool",
          content: [{ type: "tool-result", ...call, output: { type: "text", value: "sunny" } }],
        },
      ],
    });
    assert.equal(typeof text, "string");
  });

  test("throws the endpoint's error", async () => {
    const { sdk, model } = await load();
    const wrong = sdk.generateText({ ...{ model, ...greedy, maxRetries: 0 }, temperature: 9 });
    const error = await wrong.catch((error) => error);
    assert.ok(sdk.APICallError.isInstance(error), `${error}`);
    assert.equal(error.statusCode, 400);
    assert.match(error.message, /temperature/);
  });
}

/** Tests of a provider's embeddings. `load()` resolves to `{ sdk, embedder }`. */
export function testAiSdkEmbeddings(load) {
  test("embeds one value and several", async () => {
    const { sdk, embedder } = await load();
    const one = await sdk.embed({ model: embedder, value: "a dog" });
    const { embeddings, usage } = await sdk.embedMany({
      model: embedder,
      values: ["a fox", "a dog"],
    });
    assert.equal(embeddings.length, 2);
    assert.deepEqual(embeddings[1], one.embedding);
    assert.ok(usage.tokens > one.usage.tokens);
  });
}
