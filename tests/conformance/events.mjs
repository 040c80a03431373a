//! Parses server-sent events as bytes arrive, and merges the chunks of a stream.

/** Splits a stream's bytes into events and comments as they arrive. */
export class EventParser {
  /** All text so far. */
  text = "";
  /** Payloads of `data:` lines, `[DONE]` among them. */
  data = [];
  /** Comment lines. */
  comments = [];
  /** The number of comments before the first event. */
  leadingComments = 0;

  #decoder = new TextDecoder("utf-8", { fatal: true });
  #pending = "";

  /** Returns the chunks that these bytes completed. */
  push(bytes) {
    const text = this.#decoder.decode(bytes, { stream: true });
    this.text += text;
    this.#pending += text;
    const blocks = this.#pending.split("\n\n");
    this.#pending = blocks.pop();
    const chunks = [];
    for (const line of blocks.flatMap((block) => block.split("\n"))) {
      if (line.startsWith(":")) {
        this.comments.push(line);
        if (this.data.length === 0) this.leadingComments += 1;
      } else if (line.startsWith("data: ")) {
        const data = line.slice("data: ".length);
        this.data.push(data);
        if (data !== "[DONE]") chunks.push(JSON.parse(data));
      }
    }
    return chunks;
  }
}

const LISTS = ["tokens", "token_logprobs", "top_logprobs", "text_offset"];

/** The chunks' choices by index: `{ index, text, finish_reason, finishes, logprobs, token_ids }`. */
export function merge(chunks) {
  const choices = [];
  for (const { index, text, finish_reason, logprobs, token_ids } of chunks.flatMap(
    (chunk) => chunk.choices,
  )) {
    choices[index] ??= { index, text: "", finish_reason: null, finishes: 0, logprobs: null };
    const choice = choices[index];
    choice.text += text;
    if (finish_reason !== null) {
      choice.finish_reason = finish_reason;
      choice.finishes += 1;
    }
    if (logprobs) {
      choice.logprobs ??= Object.fromEntries(LISTS.map((name) => [name, []]));
      for (const name of LISTS) choice.logprobs[name].push(...logprobs[name]);
    }
    if (token_ids) choice.token_ids = [...(choice.token_ids ?? []), ...token_ids];
  }
  return choices;
}

/** The chunks' choices by index, as in the whole answer of a chat, and `roles`: how many deltas gave the role. */
export function mergeMessages(chunks) {
  const choices = [];
  for (const { index, delta, finish_reason, stop_reason, logprobs } of chunks.flatMap(
    (chunk) => chunk.choices,
  )) {
    choices[index] ??= {
      ...{ index, roles: 0, finishes: 0, finish_reason: null, stop_reason: null, logprobs: null },
      message: { role: undefined, content: "", refusal: null },
    };
    const choice = choices[index];
    const { message } = choice;
    if (delta.role !== undefined) {
      message.role = delta.role;
      choice.roles += 1;
    }
    message.content += delta.content ?? "";
    if (delta.reasoning_content !== undefined) {
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    }
    for (const { index: position, ...call } of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      if (message.tool_calls[position] === undefined) {
        message.tool_calls[position] = { ...call, function: { arguments: "", ...call.function } };
      } else {
        message.tool_calls[position].function.arguments += call.function.arguments;
      }
    }
    if (finish_reason !== null) {
      choice.finish_reason = finish_reason;
      choice.stop_reason = stop_reason;
      choice.finishes += 1;
    }
    if (logprobs) {
      choice.logprobs ??= { content: [], refusal: null };
      choice.logprobs.content.push(...logprobs.content);
    }
  }
  for (const { message } of choices) {
    if (message.content === "" && message.tool_calls) message.content = null;
  }
  return choices;
}
