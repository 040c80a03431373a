//! The body of a chat for a call of the AI SDK: messages, tools and the other fields.

import type { ChatCompletionRequest, ChatRequestMessage } from "../api/chat.js";
import { fieldsOf, ownFields, withoutUndefined } from "./call_fields.js";
import type {
  ModelCall,
  ModelTool,
  ModelToolChoice,
  ModelWarning,
  PromptMessage,
  PromptPart,
  ToolOutput,
} from "./model_types.js";

/**
 * The body, and a warning for each setting of the call that the endpoint does not have.
 *
 * @throws TypeError for a part of a message that a model here cannot read
 */
export function chatBody(
  modelId: string,
  call: ModelCall,
): { body: ChatCompletionRequest; warnings: ModelWarning[] } {
  const warnings: ModelWarning[] = [];
  const tools = toolsOf(call.tools, warnings);
  const body: ChatCompletionRequest = {
    ...{ model: modelId, messages: call.prompt.flatMap(messagesOf) },
    ...fieldsOf(call),
    ...withoutUndefined({ tools, tool_choice: tools && choiceOf(call.toolChoice) }),
    ...ownFields(call),
  };
  return { body, warnings };
}

function messagesOf({ role, content }: PromptMessage): ChatRequestMessage[] {
  if (typeof content === "string") {
    return [{ role: role as ChatRequestMessage["role"], content }];
  }
  switch (role) {
    case "assistant":
      return [assistantMessage(content)];
    case "tool":
      return content.flatMap(toolMessage);
    default:
      return [{ role: role as ChatRequestMessage["role"], content: userContent(content) }];
  }
}

function userContent(parts: readonly PromptPart[]): NonNullable<ChatRequestMessage["content"]> {
  const [first, ...others] = parts;
  if (first?.type === "text" && others.length === 0) return first.text ?? "";
  return parts.map((part) => {
    if (part.type === "text") return { type: "text", text: part.text ?? "" };
    const isImage = part.type === "file" && part.mediaType?.startsWith("image/");
    if (!isImage || part.data === undefined) {
      throw new TypeError(
        `a message takes text and images, not a ${part.mediaType ?? "part"} of type ${part.type}`,
      );
    }
    return { type: "image_url", image_url: { url: addressOf(part.data, part.mediaType) } };
  });
}

/** The URL of an image. */
function addressOf(data: Uint8Array | string | URL, mediaType: string | undefined): string {
  if (data instanceof URL) return data.href;
  if (typeof data === "string" && /^(data|https?):/.test(data)) return data;
  // The endpoint recognizes the type by the bytes.
  const type = mediaType === undefined || mediaType === "image/*" ? "image/png" : mediaType;
  return `data:${type};base64,${typeof data === "string" ? data : base64Of(data)}`;
}

function base64Of(bytes: Uint8Array): string {
  // More arguments than this may exceed the stack.
  const CHUNK = 1 << 15;
  let binary = "";
  for (let at = 0; at < bytes.length; at += CHUNK) {
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  }
  return btoa(binary);
}

function assistantMessage(parts: readonly PromptPart[]): ChatRequestMessage {
  const textOf = (type: string) =>
    parts
      .filter((part) => part.type === type)
      .map(({ text }) => text ?? "")
      .join("");
  const calls = parts.filter(({ type }) => type === "tool-call");
  const toolCalls = calls.map(({ toolCallId, toolName, input }) => ({
    ...{ id: toolCallId ?? null, type: "function" as const },
    function: { name: toolName ?? "", arguments: JSON.stringify(input ?? {}) },
  }));
  const [content, reasoning] = [textOf("text"), textOf("reasoning")];
  return {
    role: "assistant",
    content,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls }),
  };
}

/** The message of a result. Answers to approval requests are left out. */
function toolMessage({ type, toolCallId, output }: PromptPart): ChatRequestMessage[] {
  if (type !== "tool-result" || output === undefined) return [];
  const id = toolCallId === undefined ? {} : { tool_call_id: toolCallId };
  return [{ role: "tool", ...id, content: resultText(output) }];
}

function resultText(output: ToolOutput): string {
  switch (output.type) {
    case "text":
    case "error-text":
      return output.value;
    case "execution-denied":
      return output.reason ?? "The execution of this tool was denied.";
    case "content": {
      const isText = output.value.every(({ type }) => type === "text");
      const texts = output.value.map(({ text }) => text ?? "");
      return isText ? texts.join("\n") : JSON.stringify(output.value);
    }
    default:
      return JSON.stringify(output.value);
  }
}

function toolsOf(
  tools: readonly ModelTool[] | undefined,
  warnings: ModelWarning[],
): object[] | undefined {
  const functions = (tools ?? []).filter((tool) => {
    if (tool.type === "function") return true;
    const details = "tools that a vendor runs do not exist here";
    warnings.push({ type: "unsupported", feature: `the provider's tool ${tool.name}`, details });
    return false;
  });
  if (functions.length === 0) return undefined;
  return functions.map(({ name, description, inputSchema, strict }) => ({
    type: "function",
    function: withoutUndefined({ name, description, parameters: inputSchema, strict }),
  }));
}

function choiceOf(choice: ModelToolChoice | undefined): ChatCompletionRequest["tool_choice"] {
  if (choice?.type !== "tool") return choice?.type;
  return { type: "function", function: { name: choice.toolName } };
}
