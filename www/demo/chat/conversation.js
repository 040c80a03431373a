//! Conversations as data: what the page keeps, sends and exports. No elements and no storage.

/** @import { ChatRequestMessage } from "../../dist/index.js" */

/**
 * A message of a conversation.
 *
 * @typedef {object} Message
 * @property {"user" | "assistant"} role
 * @property {string} content
 * @property {string} [reasoning] what the model thought before it answered
 * @property {Blob[]} [images] that a user's message begins with
 * @property {true} [isIncomplete] an answer that is being written, or that was lost before its end
 *
 * @typedef {object} Conversation
 * @property {string} id
 * @property {string} title empty until the user gives a name
 * @property {string} system the system message; empty: none
 * @property {Message[]} messages
 * @property {number} createdMs
 * @property {number} updatedMs
 */

const TITLE_CHARS = 60;

/** @returns {Conversation} */
export function newConversation() {
  const now = Date.now();
  return {
    id: randomId(),
    title: "",
    system: "",
    messages: [],
    createdMs: now,
    updatedMs: now,
  };
}

/** `crypto.randomUUID` exists only in secure contexts. */
function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {Conversation} conversation */
export function titleOf({ title, messages }) {
  if (title !== "") return title;
  const first =
    messages
      .find(({ role }) => role === "user")
      ?.content.trim()
      .split("\n")[0] ?? "";
  const characters = Array.from(first);
  if (characters.length <= TITLE_CHARS) return first || "New conversation";
  return `${characters.slice(0, TITLE_CHARS).join("")}…`;
}

/**
 * The messages of a request.
 *
 * @param {Pick<Conversation, "system" | "messages">} conversation
 * @returns {ChatRequestMessage[]}
 */
export function requestMessages({ system, messages }) {
  const sent = messages.map(requestMessage);
  if (system.trim() !== "") sent.unshift({ role: "system", content: system });
  return sent;
}

/**
 * @param {Message} message
 * @returns {ChatRequestMessage}
 */
function requestMessage({ role, content, images = [] }) {
  if (images.length === 0) return { role, content };
  const parts = images.map((url) => ({
    type: /** @type {const} */ ("image_url"),
    image_url: { url },
  }));
  return { role, content: [...parts, { type: "text", text: content }] };
}

/** The conversation as JSON. Images are left out, except for type and size. @param {Conversation} conversation */
export function asJson(conversation) {
  const messages = conversation.messages.map(({ images, ...message }) => ({
    ...message,
    ...(images && { images: images.map(({ type, size }) => ({ type, size })) }),
  }));
  const named = { ...conversation, messages, title: titleOf(conversation) };
  return `${JSON.stringify(named, undefined, 2)}\n`;
}

/** @param {Conversation} conversation */
export function asMarkdown(conversation) {
  const { system, messages } = conversation;
  const parts = [`# ${titleOf(conversation)}`];
  if (system.trim() !== "") parts.push("## System", system);
  for (const { role, content, reasoning, images = [], isIncomplete } of messages) {
    parts.push(role === "user" ? "## User" : "## Assistant");
    if (reasoning) parts.push(quoted(reasoning));
    if (images.length > 0) parts.push(images.map(() => "[image]").join(" "));
    parts.push(content);
    if (isIncomplete) parts.push("*(incomplete)*");
  }
  return `${parts.join("\n\n")}\n`;
}

/** @param {string} text */
function quoted(text) {
  return text
    .trim()
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");
}

/**
 * The stored conversation, if it has the form of one. Another version of the page may have stored something else.
 *
 * @param {unknown} stored
 * @returns {Conversation | undefined}
 */
export function restored(stored) {
  const given = /** @type {Partial<Conversation>} */ (Object(stored));
  if (typeof given.id !== "string" || !Array.isArray(given.messages)) return undefined;
  const text = (/** @type {unknown} */ value) => (typeof value === "string" ? value : "");
  const time = (/** @type {unknown} */ value) => (typeof value === "number" ? value : 0);
  const messages = given.messages.flatMap((message) => {
    const { role, content, reasoning, images, isIncomplete } = Object(message);
    if (role !== "user" && role !== "assistant") return [];
    /** @type {Message} */
    const known = { role, content: text(content) };
    if (typeof reasoning === "string") known.reasoning = reasoning;
    if (isIncomplete === true) known.isIncomplete = true;
    if (Array.isArray(images)) known.images = images.filter((it) => it instanceof Blob);
    return [known];
  });
  return {
    id: given.id,
    title: text(given.title),
    system: text(given.system),
    messages,
    createdMs: time(given.createdMs),
    updatedMs: time(given.updatedMs),
  };
}
