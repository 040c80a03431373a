//! Converts prompts of the Prompt API to messages of a chat, as its Web IDL and its algorithms say. What they show is copied, because
//! a session sends them again with every prompt.

import type { ImageInput } from "../api/attachments.js";
import type { ChatRequestMessage } from "../api/chat.js";
import { type PixelSource, isPixelSource, pixelsOf } from "../api/pixels.js";
import { type ContentType, contentType } from "./expected.js";

/** An image of a prompt: a file, its bytes, or an object that shows it. */
export type PromptImage = Blob | BufferSource | PixelSource;

/** A part of a message. */
export type PromptPart = { type: "text"; value: string } | { type: "image"; value: PromptImage };

/** A message of a prompt. */
export interface PromptMessage {
  role: "system" | "user" | "assistant";
  content: string | readonly PromptPart[];
  /** True for the last message if it is an assistant's that the answer continues. */
  prefix?: boolean;
}

/** A prompt: the user's text, or messages. Other values are converted to text. */
export type PromptInput = string | readonly PromptMessage[];

/** A prompt whose form is right. */
export interface ReadPrompt {
  /** Its messages as those of a chat, once images are read. */
  messages: Promise<ChatRequestMessage[]>;
  /** Whether the answer continues the last one. */
  continues: boolean;
}

/** A message of a prompt that was checked: texts and images in their order. */
interface CheckedMessage {
  role: PromptMessage["role"];
  parts: readonly (string | PromptImage)[];
}

const ROLES = ["system", "user", "assistant"];

/**
 * Reads a prompt. Before this returns, it is checked, and canvases and videos are read.
 *
 * @throws TypeError if a value has a wrong type, or a system message is not the first one
 * @throws DOMException named `SyntaxError` if a prefix is in a wrong place, `NotSupportedError` for contents that the session does
 * not expect
 */
export function readPrompt(input: PromptInput, takesImages: boolean): ReadPrompt {
  const given = isSequence(input) ? [...input] : [{ role: "user", content: `${input}` }];
  const checked = given.map((message, index) => {
    if (typeof message !== "object" || message === null) {
      throw new TypeError(`a message is an object with role and content, not ${message}`);
    }
    const { role, content, prefix = false } = message as PromptMessage;
    if (!ROLES.includes(role)) {
      throw new TypeError(`role: ${role} is not system, user or assistant`);
    }
    if (role === "system" && index > 0) {
      throw new TypeError("a system message is the first one of a conversation");
    }
    if (prefix && (role !== "assistant" || index < given.length - 1)) {
      const reason = "prefix is for the last message of a prompt, an assistant's";
      throw new DOMException(reason, "SyntaxError");
    }
    return { role, parts: partsOf(content, role, takesImages) };
  });
  const messages = Promise.all(checked.map(chatMessage));
  // A failure that nobody awaits yet must not be reported as an unhandled rejection.
  messages.catch(() => {});
  const last = given.at(-1) as PromptMessage | undefined;
  return { messages, continues: last?.prefix === true };
}

function partsOf(
  content: PromptMessage["content"],
  role: PromptMessage["role"],
  takesImages: boolean,
): CheckedMessage["parts"] {
  if (content === undefined) throw new TypeError("a message needs its content");
  if (!isSequence(content)) return [`${content}`];
  const parts: (string | PromptImage)[] = [];
  for (const { type: name, value } of content as readonly { type: unknown; value: unknown }[]) {
    const type = contentType(name);
    if (type !== "text") {
      refuseUnexpected(type, role, takesImages);
      if (!isImage(value)) throw new TypeError("the value of an image is no image and no bytes");
      parts.push(value);
      continue;
    }
    if (isImage(value)) throw new TypeError("the value of a text is an image or bytes");
    const before = parts.at(-1);
    // Nothing is put between texts.
    if (typeof before === "string") parts[parts.length - 1] = `${before}${value}`;
    else parts.push(`${value}`);
  }
  return parts;
}

function refuseUnexpected(type: ContentType, role: string, takesImages: boolean): void {
  const reason =
    role === "assistant"
      ? `a message of the assistant has text, not ${type}`
      : type === "image"
        ? "the session takes text: name images in expectedInputs of create()"
        : `the model takes no ${type}`;
  const isExpected = type === "image" && takesImages && role !== "assistant";
  if (!isExpected) throw new DOMException(reason, "NotSupportedError");
}

/** Its content is a string if it has no images. */
async function chatMessage({ role, parts }: CheckedMessage): Promise<ChatRequestMessage> {
  const [first = "", ...others] = parts;
  if (typeof first === "string" && others.length === 0) return { role, content: first };
  const content = parts.map(async (part) =>
    typeof part === "string"
      ? { type: "text" as const, text: part }
      : { type: "image_url" as const, image_url: { url: await copyOf(part) } },
  );
  return { role, content: await Promise.all(content) };
}

const isSequence = (value: unknown): value is Iterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.iterator in value;

const isBytes = (value: unknown): value is BufferSource =>
  value instanceof ArrayBuffer || ArrayBuffer.isView(value);

const isImage = (value: unknown): value is PromptImage =>
  value instanceof Blob || isBytes(value) || isPixelSource(value);

/** A copy of an image as it is now: the original may change, or be closed. */
async function copyOf(image: PromptImage): Promise<ImageInput> {
  if (image instanceof Blob) return image;
  if (isBytes(image)) return new Blob([image]);
  const { width, rgba } = await pixelsOf(image);
  return new ImageData(new Uint8ClampedArray(rgba.buffer as ArrayBuffer), width);
}
