//! Shared by the cases of group O: the base request A, and streams of events.

import { T } from "./chat.mjs";
import { equal, fail, matches, ok } from "./check.mjs";

export const MESSAGES = "/v1/messages";

/** The base request with `members` added or replaced; `undefined` removes one. */
export const A = (members = {}) => ({
  model: "default",
  messages: [{ role: "user", content: "Tell me of a fox." }],
  max_tokens: 8,
  ...members,
});

/** A case of group O: `run(messages, ctx)` gets a context for the route of messages, and one for completions. */
export const messagesCase = (id, title, doors, template, run) => ({
  id,
  title,
  doors,
  async run(ctx) {
    await ctx.switches({ chatTemplate: template ?? T });
    await run(ctx.at(MESSAGES), ctx);
  },
});

/** The events of a stream, each checked: its two lines and its type. */
export async function events(messages, body) {
  const { status, headers, text } = await messages.post({ ...body, stream: true });
  equal(status, 200, "status of a stream");
  matches(headers.get("content-type"), /^text\/event-stream\b/, "content type");
  ok(text.endsWith("\n\n"), "ends with an empty line", text.slice(-20));
  const blocks = text.slice(0, -2).split("\n\n");
  return blocks.map((block, i) => {
    const found = /^event: (\S+)\ndata: (.*)$/.exec(block) ?? fail(`event ${i}: ${block}`);
    const event = JSON.parse(found[2]);
    equal(event.type, found[1], `type of event ${i}`);
    return event;
  });
}

/** The text of a message. */
export const textOf = ({ content }) => content.map(({ text }) => text ?? "").join("");

/** The number of tokens of its prompt. */
export const promptTokens = ({ usage }) => usage.input_tokens + usage.cache_read_input_tokens;

/** A message without what differs from run to run. */
export function lasting({ id, usage, content, ...rest }) {
  const { input_tokens, cache_read_input_tokens, ...counts } = usage;
  return { ...rest, usage: counts, content: content.map(({ id, ...block }) => block) };
}

/** The message that the events make. */
export function joined(events) {
  const [{ message }] = events;
  const content = [];
  let json = "";
  for (const { type, content_block, delta } of events) {
    const last = content.at(-1);
    if (type === "content_block_start") {
      content.push({ ...content_block });
      json = "";
    } else if (delta?.type === "text_delta") {
      last.text += delta.text;
    } else if (delta?.type === "thinking_delta") {
      last.thinking += delta.thinking;
    } else if (delta?.type === "input_json_delta") {
      json += delta.partial_json;
    } else if (type === "content_block_stop" && last.type === "tool_use") {
      last.input = JSON.parse(json);
    }
  }
  const { delta, usage } = events.at(-2);
  return { ...message, ...delta, usage, content };
}
