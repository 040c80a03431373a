//! Tools of a session: their declarations for a chat, and their calls.

import type { ChatMessageCall } from "../generated/types.js";
import type { Message } from "./prompts.js";

/** A function that the model may call. */
export interface LanguageModelTool {
  name: string;
  description: string;
  /** The JSON schema of its argument. */
  inputSchema: object;
  /** Is given the argument, and gives the text that the model reads. */
  execute(input: unknown): Promise<string> | string;
}

/** The tools as fields of a chat, and of a request to tokenize one. */
export function toolFields(tools: readonly LanguageModelTool[]): Record<string, unknown> {
  if (tools.length === 0) return {};
  const declared = tools.map(({ name, description, inputSchema }) => ({
    type: "function",
    function: { name, description, parameters: inputSchema },
  }));
  return { tools: declared };
}

/** @throws TypeError if a tool has no name or no function, or two have the same name */
export function checkTools(tools: readonly LanguageModelTool[]): void {
  const names = new Set<string>();
  for (const { name, execute } of tools) {
    if (typeof name !== "string" || name === "") throw new TypeError("tools: a tool has no name");
    if (typeof execute !== "function") throw new TypeError(`tools: ${name} has no execute`);
    if (names.has(name)) throw new TypeError(`tools: two are called ${name}`);
    names.add(name);
  }
}

/** Runs the calls of a message, one after the other. An error of a tool ends the prompt. */
export async function resultsOf(
  calls: readonly ChatMessageCall[],
  tools: readonly LanguageModelTool[],
): Promise<Message[]> {
  const results: Message[] = [];
  for (const { id, function: called } of calls) {
    const tool = tools.find(({ name }) => name === called.name);
    if (tool === undefined) throw new DOMException(`no tool ${called.name}`, "OperationError");
    const result = await tool.execute(JSON.parse(called.arguments));
    results.push({ role: "tool", tool_call_id: id ?? "", content: `${result}` });
  }
  return results;
}
