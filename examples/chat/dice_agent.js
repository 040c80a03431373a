// The agent of the apps over the AI SDK: a chat with a tool, without a server. The model is `model.gguf` beside the page.

import { DirectChatTransport, jsonSchema, ToolLoopAgent, tool } from "ai";
import { createInpage } from "inpage/ai-sdk";

const sides = { type: "integer", minimum: 2, maximum: 20 };
const inputSchema = jsonSchema({ type: "object", properties: { sides }, required: ["sides"] });
const execute = (input) => ({ rolled: 1 + Math.floor(Math.random() * input.sides) });
const roll = tool({ description: "Rolls a die.", inputSchema, execute });

const inpage = createInpage({ model: "./model.gguf" });
const asks = ({ messages }) =>
  /\broll\b/i.test(JSON.stringify(messages.findLast(({ role }) => role === "user")));
const prepareStep = (step) => ({
  toolChoice: step.stepNumber === 0 && asks(step) ? "required" : "none",
});
const agent = new ToolLoopAgent({
  model: inpage(),
  tools: { roll },
  prepareStep,
  maxOutputTokens: 80,
});
/** The transport for `useChat` of the AI SDK and `useChatRuntime` of assistant-ui. `onData` gets the progress of the load. */
export const transport = inpage.withLoadProgress(new DirectChatTransport({ agent }));
