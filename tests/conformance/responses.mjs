//! Shared by the cases of group M: the base request Q, and streams of events.

import { T } from "./chat.mjs";
import { equal, fail, matches, ok } from "./check.mjs";

export const RESPONSES = "/v1/responses";

/** The base request with `members` added or replaced; `undefined` removes one. */
export const Q = (members = {}) => ({
  model: "default",
  input: "Tell me of a fox.",
  max_output_tokens: 8,
  ...members,
});

/** A case of group M: `run(responses, ctx)` gets a context for the route of responses, and one for completions. */
export const responsesCase = (id, title, doors, template, run) => ({
  id,
  title,
  doors,
  async run(ctx) {
    await ctx.switches({ chatTemplate: template ?? T });
    await run(ctx.at(RESPONSES), ctx);
  },
});

/** The events of a stream, each checked: its two lines, its type and its number; `[DONE]` follows them. */
export async function events(responses, body) {
  const { status, headers, text } = await responses.post({ ...body, stream: true });
  equal(status, 200, "status of a stream");
  matches(headers.get("content-type"), /^text\/event-stream\b/, "content type");
  const end = "\n\ndata: [DONE]\n\n";
  ok(text.endsWith(end), "ends with [DONE]", text.slice(-40));
  const blocks = text.slice(0, -end.length).split("\n\n");
  return blocks.map((block, i) => {
    const found = /^event: (\S+)\ndata: (.*)$/.exec(block) ?? fail(`event ${i}: ${block}`);
    const event = JSON.parse(found[2]);
    equal(event.type, found[1], `type of event ${i}`);
    equal(event.sequence_number, i, `number of event ${i}`);
    return event;
  });
}

/** The text of an answer's messages. */
export const textOf = ({ output }) =>
  output
    .filter(({ type }) => type === "message")
    .flatMap(({ content }) => content.map(({ text }) => text))
    .join("");

/** Answers without what differs from run to run. */
export function lasting({ id, created_at, completed_at, usage, output, ...rest }) {
  const items = output.map(({ id, call_id, ...item }) => item);
  return { ...rest, usage: { ...usage, input_tokens_details: undefined }, output: items };
}
