//! Shared by the cases of group K: the base request C, the template T, and what is compared.

import { equal, ok } from "./check.mjs";

export const CHAT = "/v1/chat/completions";

/**
 * T: each message on a line of its own, and a line that counts the tools. It mentions no tags, so all text is content and calls are
 * bare objects.
 */
export const T =
  "{% if tools %}{{ tools | length }} tools\n{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/** The prompt that T makes of messages. */
export const rendered = (messages) =>
  `${messages.map(({ role, content }) => `${role}: ${content}\n`).join("")}assistant:`;

/** T with the tags of Hermes, whose calls are `<tool_call>{"name": ..., "arguments": ...}</tool_call>`. */
export const HERMES = `{# <tool_call> arguments </tool_call> #}${T}`;

/** A template whose prompt closes the reasoning of a model that reasons: such a model may otherwise reason before a forced call. */
export const withoutReasoning = (template) =>
  `${template}{% if add_generation_prompt %}<think>\n\n</think>\n\n{% endif %}`;

/** T after which the model reasons, unless `enable_thinking` is false. */
export const REASONING = `${T}{% if add_generation_prompt %}{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}{% endif %}`;

export const user = (content) => ({ role: "user", content });

/** The base request with `members` added or replaced; `undefined` removes one. */
export const C = (members = {}) => ({
  model: "default",
  messages: [user("Tell me of a fox.")],
  max_tokens: 8,
  ...members,
});

/** The choices of an answer without the random ids of calls, and without what only merged streams have. */
export const withoutIds = (choices) =>
  choices.map(({ roles, finishes, message, ...choice }) => ({
    ...choice,
    message: {
      ...message,
      ...(message.tool_calls
        ? { tool_calls: message.tool_calls.map(({ id, ...call }) => call) }
        : {}),
    },
  }));

/** A case of group K: `run(chat, ctx)` gets a context for the route of chat, and one for completions. */
export const chatCase = (id, title, doors, template, run) => ({
  id,
  title,
  doors,
  async run(ctx) {
    await ctx.switches({ chatTemplate: template });
    await run(ctx.at(CHAT), ctx);
  },
});

/** The only choice of an answer to C + `members`. */
export async function reply(chat, members) {
  const { choices } = await chat.completion(C(members));
  equal(choices.length, 1, "choices");
  return choices[0];
}

/** The content of the only message. */
export const content = async (chat, members) => (await reply(chat, members)).message.content;

/**
 * C + `members` must have the prompt `prompt`: its tokens are counted, and the model's log-probabilities after it are compared. The
 * texts of answers may differ: only completions leave special tokens out, and tools constrain only an answer of chat.
 */
export async function hasPrompt(chat, ctx, members, prompt, what) {
  const logprobs = { logprobs: true, top_logprobs: 3 };
  const one = { max_tokens: 1, ignore_eos: true, temperature: 0, ...logprobs };
  const answer = await chat.completion(C({ ...members, ...one }));
  const expected = await ctx.completion({ model: "default", prompt, ...one });
  equal(answer.usage.prompt_tokens, expected.usage.prompt_tokens, `${what}: prompt_tokens`);
  const seen = answer.choices[0].logprobs.content[0].top_logprobs;
  const most = expected.choices[0].logprobs.content[0].top_logprobs;
  const tokens = (entries) => entries.map(({ token }) => token);
  equal(tokens(seen), tokens(most), `${what}: the most likely tokens`);
  seen.forEach(({ token, logprob }, i) => {
    const difference = Math.abs(logprob - most[i].logprob);
    ok(difference < 0.01, `${what}: log-probability of ${token}`, [logprob, most[i].logprob]);
  });
}
