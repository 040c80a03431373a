//! Parses server-sent events as bytes arrive, and merges the chunks of a stream.

/** Splits a stream's bytes into events and comments as they arrive. */
export class EventParser {
  /** All text so far. */
  text = "";
  /** Payloads of `data:` lines, `[DONE]` among them. */
  data = [];
  /** Comment lines. */
  comments = [];
  /** How many comments came before the first event. */
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
