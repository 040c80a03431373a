//! The loops of JavaScript clients that run tools, and objects, against a server with SmolLM2: node tool_loops.mjs ORIGIN
//! The text of the model is not checked; the loops must run, and arguments and objects must satisfy their schemas.

import assert from "node:assert/strict";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import * as sdk from "ai";
import { createAgent, createMiddleware, tool } from "langchain";
import OpenAI from "openai";
import { z } from "zod";

const baseURL = `${process.argv[2]}/v1`;
const given = { apiKey: "unused", baseURL };
const QUESTION = "What is the weather in Oslo?";
const inputs = z.object({ city: z.string().max(40) });
const description = "Reports the weather of a city.";

/** A tool's function, and what it was called with. */
function weather() {
  const asked = [];
  const execute = async (input) => {
    asked.push(inputs.parse(input));
    return "sunny";
  };
  return { asked, execute };
}

const providers = {
  "openai-compatible": createOpenAICompatible({
    ...{ name: "inpage", baseURL, supportsStructuredOutputs: true, includeUsage: true },
  }).chatModel("default"),
  "openai, chat": createOpenAI(given).chat("default"),
  "openai, responses": createOpenAI(given)("default"),
  anthropic: createAnthropic(given)("default"),
};
const greedy = { temperature: 0, maxOutputTokens: 200 };

async function aiSdk(model) {
  const { asked, execute } = weather();
  const tools = { weather: sdk.tool({ description, inputSchema: inputs, execute }) };
  const providerOptions = { openai: { store: false } };
  const agent = new sdk.ToolLoopAgent({
    ...{ model, tools, providerOptions, ...greedy, stopWhen: sdk.stepCountIs(3) },
    // The model does not decide to call by itself.
    prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "auto" }),
  });
  const { steps } = await agent.generate({ prompt: QUESTION });
  assert.ok(asked.length > 0 && steps.length > 1, `${steps.length} steps`);
  const stream = await agent.stream({ prompt: QUESTION });
  const kinds = new Set();
  for await (const { type } of stream.fullStream) kinds.add(type);
  for (const kind of ["tool-input-delta", "tool-call", "tool-result", "finish"]) {
    assert.ok(kinds.has(kind), `${kind} of ${[...kinds]}`);
  }
  const schema = z.object({ name: z.string().max(40), population: z.number().int() });
  const output = sdk.Output.object({ schema });
  const object = await sdk.generateText({ model, output, ...greedy, prompt: "Describe Oslo." });
  schema.parse(object.output);
}

async function langChain(useResponsesApi) {
  const options = { apiKey: "unused", configuration: { baseURL }, useResponsesApi };
  const model = new ChatOpenAI({
    ...{ model: "default", temperature: 0, maxTokens: 200, maxRetries: 0, ...options },
  });
  const { asked, execute } = weather();
  const declared = tool(execute, { name: "weather", description, schema: inputs });
  // With the responses route, this library leaves the word "required" out of its request, but not a name.
  const bound = model.bindTools([declared], { tool_choice: "weather" });
  const { tool_calls } = await bound.invoke(QUESTION);
  inputs.parse(tool_calls[0].args);
  // The model does not decide to call by itself.
  const toolChoice = { type: "function", function: { name: "weather" } };
  const first = createMiddleware({
    name: "first",
    wrapModelCall: (request, handler) =>
      handler(asked.length === 0 ? { ...request, toolChoice } : request),
  });
  const middleware = [first];
  const agent = createAgent({ model, tools: [declared], responseFormat: inputs, middleware });
  const past = [
    { role: "user", content: "What is the weather in Rome?" },
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "1", name: "weather", args: { city: "Rome" } }],
    },
    { role: "tool", tool_call_id: "1", content: "rain" },
    { role: "user", content: QUESTION },
  ];
  const limit = { recursionLimit: 8 };
  const ended = await agent.invoke({ messages: past }, limit).catch((error) => error);
  // The model decides when the loop ends, and may do so at the limit. With the responses route, it may also end in words.
  if (ended instanceof Error) assert.equal(ended.name, "GraphRecursionError", ended.stack);
  else if (!useResponsesApi) inputs.parse(ended.structuredResponse);
  assert.ok(asked.length > 0, "the agent ran no tool");
}

async function openaiNode() {
  const client = new OpenAI({ ...given, maxRetries: 0 });
  const { asked, execute } = weather();
  const { $schema, ...parameters } = z.toJSONSchema(inputs);
  const declared = {
    name: "weather",
    description,
    parameters,
    function: execute,
    parse: JSON.parse,
  };
  const request = {
    ...{ model: "default", temperature: 0, max_tokens: 200 },
    messages: [{ role: "user", content: QUESTION }],
    tools: [{ type: "function", function: declared }],
    tool_choice: { type: "function", function: { name: "weather" } },
  };
  for (const stream of [false, true]) {
    const runner = client.chat.completions.runTools({ ...request, stream });
    await runner.done();
    const [, call, result] = runner.messages;
    assert.equal(call.tool_calls[0].function.name, "weather");
    assert.equal(result.content, "sunny");
  }
  assert.equal(asked.length, 2);

  const input = [{ role: "user", content: QUESTION }];
  const tools = [{ type: "function", name: "weather", description, parameters }];
  const shared = { model: "default", temperature: 0, max_output_tokens: 200, tools, store: false };
  const first = await client.responses.create({ ...shared, input, tool_choice: "required" });
  const [call] = first.output;
  inputs.parse(JSON.parse(call.arguments));
  const result = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
  const stream = client.responses.stream({ ...shared, input: [...input, call, result] });
  const second = await stream.finalResponse();
  assert.equal(second.object, "response");
}

const suites = {
  ...Object.fromEntries(
    Object.entries(providers).map(([name, model]) => [`AI SDK, ${name}`, () => aiSdk(model)]),
  ),
  "LangChain, chat": () => langChain(false),
  "LangChain, responses": () => langChain(true),
  "openai for JavaScript": openaiNode,
};
for (const [name, run] of Object.entries(suites)) {
  const start = performance.now();
  await run();
  console.log(`ok ${name}, ${((performance.now() - start) / 1000).toFixed(1)} s`);
}
