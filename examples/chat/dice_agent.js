// The agent of the apps over the AI SDK: a chat with a tool, without a server. The model is `model.gguf` beside the page.

import { DirectChatTransport, jsonSchema, ToolLoopAgent, tool } from "ai";
import { createInpage } from "inpage/ai-sdk";
import { asksToRoll, parameters, roll as execute } from "./dice.js";

const inpage = createInpage({ model: "./model.gguf" });
const roll = tool({ description: "Rolls a die.", inputSchema: jsonSchema(parameters), execute });
const prepareStep = ({ stepNumber, messages }) => {
  const asks = asksToRoll(messages.findLast(({ role }) => role === "user"));
  return { toolChoice: stepNumber === 0 && asks ? "required" : "none" };
};
const settings = { tools: { roll }, prepareStep, maxOutputTokens: 80 };
const agent = new ToolLoopAgent({ model: inpage(), ...settings });
/** The transport for `useChat` of the AI SDK and `useChatRuntime` of assistant-ui. `onData` gets the progress of the load. */
export const transport = inpage.withLoadProgress(new DirectChatTransport({ agent }));
