//! Tools of a session: their declarations for a chat, and their calls.

import type { ChatMessageCall } from "../generated/types.js";
import type { ChatRequestMessage } from "../api/chat.js";

/** A function that the model may call. */
export interface LanguageModelTool {
  name: string;
  description: string;
  /** The JSON schema of its argument. */
  inputSchema: object;
  /** Runs the tool with the argument. Resolves with the text that the model reads. */
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

/** @throws TypeError if a tool is not one, or two have the same name; what its schema throws if JSON cannot hold it */
export function checkTools(tools: readonly LanguageModelTool[]): void {
  const names = new Set<string>();
  for (const { name, description, inputSchema, execute } of tools) {
    if (typeof name !== "string" || name === "") throw new TypeError("tools: a tool has no name");
    if (typeof execute !== "function") throw new TypeError(`tools: ${name} has no execute`);
    if (!description) throw new TypeError(`tools: ${name} has no description`);
    if (names.has(name)) throw new TypeError(`tools: two are called ${name}`);
    names.add(name);
    checkSchema(name, inputSchema);
  }
}

/** A schema of an object, as tools of chats have them. */
function checkSchema(name: string, schema: object): void {
  const place = `tools: the inputSchema of ${name}`;
  const given: unknown = schema;
  if (typeof given !== "object" || given === null) throw new TypeError(`${place} is no object`);
  JSON.stringify(given);
  const { type, properties = {}, required = [] } = given as Record<string, unknown>;
  if (type !== "object") throw new TypeError(`${place} has not the type object`);
  if (typeof properties !== "object") throw new TypeError(`${place}: properties is no object`);
  if (!Array.isArray(required)) throw new TypeError(`${place}: required is no array`);
}

/** Runs a call. An error of a tool ends the prompt. */
export async function resultOf(
  { id, function: called }: ChatMessageCall,
  tools: readonly LanguageModelTool[],
): Promise<ChatRequestMessage> {
  const tool = tools.find(({ name }) => name === called.name);
  if (tool === undefined) throw new DOMException(`no tool ${called.name}`, "OperationError");
  const result = await tool.execute(JSON.parse(called.arguments));
  return { role: "tool", tool_call_id: id ?? "", content: `${result}` };
}
