//! K. Chat: messages, templates, special tokens (specification 18.2 to 18.4).

import { C, chatCase, hasPrompt, rendered, reply, T, user } from "../chat.mjs";
import { equal, ok } from "../check.mjs";
import { BIAS } from "../context.mjs";
import { ALL } from "../doors.mjs";

const assistant = (members) => ({ role: "assistant", ...members });
const call = (name, given) => ({
  id: `call_${name}`,
  type: "function",
  function: { name, arguments: given },
});
const tool = (name) => ({ type: "function", function: { name, parameters: { type: "object" } } });

/** `prompt_tokens` of C + `members`. */
const promptTokens = async (chat, members) =>
  (await chat.completion(C({ max_tokens: 0, ...members }))).usage.prompt_tokens;

export default [
  chatCase("138", "the template renders the messages", ALL, T, async (chat, ctx) => {
    const messages = [
      { role: "system", content: "Be brief." },
      user("Who is there?"),
      assistant({ content: "A fox." }),
      user("Who else?"),
    ];
    await hasPrompt(chat, ctx, { messages }, rendered(messages), "four messages");
  }),
  chatCase("139", "roles", ALL, T, async (chat, ctx) => {
    for (const [given, seen] of [
      [{ role: "tool", content: "sun", tool_call_id: "c1" }, "tool"],
      [{ role: "function", content: "sun", name: "f" }, "tool"],
      [{ role: "developer", content: "sun" }, "system"],
    ]) {
      const prompt = `${seen}: sun\nassistant:`;
      await hasPrompt(chat, ctx, { messages: [given] }, prompt, given.role);
    }
    const knows = `{# developer #}${T}`;
    await chat.switches({ chatTemplate: knows });
    const messages = [{ role: "developer", content: "sun" }];
    await hasPrompt(chat, ctx, { messages }, rendered(messages), "a template that knows developer");
  }),
  chatCase("140", "content in parts, and refusals", ALL, T, async (chat, ctx) => {
    const parts = ["a", "b"].map((text) => ({ type: "text", text }));
    const refusal = { type: "refusal", refusal: "no" };
    for (const [message, text] of [
      [user(parts), "a\nb"],
      [assistant({ content: [refusal] }), "no"],
      [assistant({ refusal: "no" }), "no"],
      [assistant({ content: null, refusal: "no" }), "no"],
    ]) {
      const prompt = `${message.role}: ${text}\nassistant:`;
      await hasPrompt(chat, ctx, { messages: [message] }, prompt, JSON.stringify(message));
    }
  }),
  chatCase("141", "malformed messages", ALL, T, async (chat) => {
    for (const message of [
      3,
      {},
      { role: 5, content: "x" },
      { role: "robot", content: "x" },
      { role: "user" },
      user(null),
      user(7),
      user([3]),
      user([{ type: "text" }]),
    ]) {
      await chat.refused(C({ messages: [message] }), 400, null, "messages");
    }
  }),
  chatCase("142", "images, sounds and files", ALL, T, async (chat) => {
    for (const part of [
      { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } },
      { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      { type: "file", file: { file_id: "f" } },
    ]) {
      const messages = [user([{ type: "text", text: "x" }, part])];
      await chat.refused(C({ messages }), 400, "unsupported_parameter", "messages");
    }
  }),
  chatCase(
    "143",
    "calls of an assistant",
    ALL,
    "{% for c in messages[0].tool_calls %}{{ c.function.name }} {{ c.function.arguments | tojson }};{% endfor %}",
    async (chat, ctx) => {
      const tool_calls = [call("f", '{"b": [1, null], "a": "ü"}'), call("g", "no JSON")];
      const prompt = 'f {"b": [1, null], "a": "ü"};g "no JSON";';
      for (const members of [{}, { content: null }, { content: "" }]) {
        const messages = [assistant({ ...members, tool_calls })];
        await hasPrompt(chat, ctx, { messages }, prompt, JSON.stringify(members));
      }
    },
  ),
  chatCase(
    "144",
    "an older call, names and ids",
    ALL,
    "{{ tools | length if tools }}{% for m in messages %}{{ m.name }},{{ m.tool_call_id }},{{ m.tool_calls | length if m.tool_calls else 0 }};{% endfor %}",
    async (chat, ctx) => {
      const messages = [
        { ...user("x"), name: "Ann" },
        assistant({ function_call: { name: "f", arguments: "{}" } }),
        { role: "tool", content: "sun", tool_call_id: "c1" },
      ];
      await hasPrompt(chat, ctx, { messages }, "Ann,,0;,,1;,c1,0;", "what the template finds");
    },
  ),
  chatCase(
    "145",
    "reasoning of an assistant",
    ALL,
    "{{ messages[0].reasoning_content }},{{ messages[0].reasoning }},{{ messages[0].thinking }}",
    async (chat, ctx) => {
      for (const name of ["reasoning_content", "reasoning", "thinking"]) {
        const messages = [assistant({ content: "x", [name]: "so" })];
        await hasPrompt(chat, ctx, { messages }, "so,so,so", name);
      }
    },
  ),
  chatCase("146", "other members of messages", ALL, T, async (chat) => {
    await chat.switches({ chatTemplate: T, unknownFields: "error" });
    await chat.completion(C({ messages: [{ ...user("x"), foo: 1, x_bar: [] }] }));
  }),
  chatCase("147", "the last message can be continued", ALL, T, async (chat, ctx) => {
    const messages = [user("Begin."), assistant({ content: "Once upon  " })];
    const lines = "user: Begin.\nassistant: Once upon";
    const bare = { messages, add_generation_prompt: false };
    await hasPrompt(chat, ctx, bare, `${lines}  \n`, "add_generation_prompt false");
    const continued = { messages, continue_final_message: true };
    await hasPrompt(chat, ctx, continued, lines, "continue_final_message");
    await hasPrompt(chat, ctx, { messages }, lines, "the default");
    const both = C({ ...continued, add_generation_prompt: true });
    await chat.refused(both, 400, "conflicting_parameters", "continue_final_message");
    await chat.switches({ chatTemplate: T, assistantPrefill: false });
    await hasPrompt(chat, ctx, { messages }, `${lines}  \nassistant:`, "assistantPrefill false");
  }),
  chatCase("148", "variables of the request", ALL, "{{ x }} {{ eos_token }}", (chat, ctx) => {
    const chat_template_kwargs = { x: "1", eos_token: "E" };
    return hasPrompt(chat, ctx, { chat_template_kwargs }, "1 E", "chat_template_kwargs");
  }),
  chatCase(
    "149",
    "reasoning_effort is a variable",
    ALL,
    "{{ reasoning_effort }},{{ enable_thinking }}",
    async (chat, ctx) => {
      for (const [members, prompt] of [
        [{ reasoning_effort: "low" }, "low,"],
        [{ reasoning_effort: "none" }, "none,False"],
        [{ reasoning_effort: "minimal" }, "minimal,False"],
        [
          {
            reasoning_effort: "none",
            chat_template_kwargs: { enable_thinking: true, reasoning_effort: "x" },
          },
          "x,True",
        ],
      ]) {
        await hasPrompt(chat, ctx, members, prompt, prompt);
      }
    },
  ),
  chatCase(
    "150",
    "the language of templates",
    ALL,
    `{% set ns = namespace(n=0) %}
  {% for i in range(5) %}
    {%- if i == 3 %}{% break %}{% endif %}
    {%- set ns.n = ns.n + i %}
  {%- endfor %}
{{- ns.n }} {{ [1, 'a', none, true, 1.0] }} {{ {'ü': "'"} | tojson }} {{ {'k': 'v'} }}
{% if missing is not defined %}
{{ missing }}|{{ 'Ab' | upper }} {{ "x"[0] ~ 2 }}
{% endif %}
`,
    (chat, ctx) => {
      const prompt = "3 [1, 'a', None, True, 1.0] {\"ü\": \"'\"} {'k': 'v'}\n|AB x2\n";
      return hasPrompt(chat, ctx, {}, prompt, "the rendered text");
    },
  ),
  chatCase("151", "templates that refuse, fail and never end", ALL, T, async (chat) => {
    for (const [template, code] of [
      ["{{ raise_exception('no foxes') }}", "invalid_value"],
      ["{{ none + 'a' }}", "invalid_value"],
      ["{% if %}", "unsupported_parameter"],
      [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "invalid_value",
      ],
    ]) {
      await chat.switches({ chatTemplate: template });
      const { body } = await chat.refused(C(), 400, code, "messages");
      if (template.includes("foxes")) {
        ok(body.error.message.includes("no foxes"), "the message of the template", body.error);
      }
    }
  }),
  chatCase("152", "the clock", ALL, "{{ strftime_now('%Y') }}", async (chat, ctx) => {
    const { created } = await chat.completion(C({ max_tokens: 0 }));
    const year = String(new Date(created * 1000).getFullYear());
    await hasPrompt(chat, ctx, {}, year, "the year");
  }),
  chatCase(
    "153",
    "the template sees the tools that may be called",
    ALL,
    "x{% for t in tools or [] %}{{ t.function.name }} {% endfor %}",
    async (chat, ctx) => {
      const tools = [tool("a"), tool("b")];
      const allowed = {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "b" }],
      };
      for (const [members, prompt] of [
        [{ tools }, "xa b "],
        [{ tools, tool_choice: "none" }, "x"],
        [{ tools, tool_choice: allowed }, "xb "],
        [{}, "x"],
      ]) {
        await hasPrompt(chat, ctx, members, prompt, JSON.stringify(members.tool_choice ?? null));
      }
    },
  ),
  chatCase(
    "154",
    "special tokens in messages are text",
    ALL,
    "{{ messages[0].content }}",
    async (chat) => {
      const { eosText } = chat.info;
      const plain = await promptTokens(chat, { messages: [user("x")] });
      const written = await promptTokens(chat, { messages: [user(`x${eosText}`)] });
      ok(written >= plain + 2, "the text of the token", [plain, written]);
      await chat.switches({ chatTemplate: `{{ messages[0].content }}${eosText}` });
      const byTemplate = await promptTokens(chat, { messages: [user("x")] });
      equal(byTemplate, plain + 1, "the token that the template writes");
    },
  ),
  chatCase(
    "155",
    "parts of special tokens in messages and variables",
    ALL,
    "{{ messages[0].content + messages[1].content }}{{ one }}{{ two }}",
    async (chat) => {
      const { eosText } = chat.info;
      const middle = Math.floor(eosText.length / 2);
      const [one, two] = [eosText.slice(0, middle), eosText.slice(middle)];
      const plain = { messages: [user("x"), user("y")] };
      const without = await promptTokens(chat, plain);
      const joined = { messages: [user(`x${one}`), user(`${two}y`)] };
      ok((await promptTokens(chat, joined)) >= without + 2, "in messages");
      const variables = { ...plain, chat_template_kwargs: { one, two } };
      ok((await promptTokens(chat, variables)) >= without + 2, "in variables");
    },
  ),
  chatCase("156", "one start of text", ALL, "x", async (chat, ctx) => {
    const ids = await ctx.IDS("x");
    const expected = await promptTokens(chat, {});
    equal(expected, ids.length, "prompt_tokens of x");
    await chat.switches({ chatTemplate: "{{ bos_token }}x" });
    const written = await promptTokens(chat, {});
    if (ids[0] === chat.info.documentStartId) equal(written, expected, "with a start of text");
    else ok(written <= expected + 1, "a start of text that is not automatic", written);
  }),
  chatCase("157", "the end of a message is not part of it", ALL, T, async (chat) => {
    const members = { ...BIAS(chat.EOS), max_tokens: 4 };
    const { message, finish_reason, stop_reason } = await reply(chat, members);
    equal([message.content, finish_reason, stop_reason], ["", "stop", null], "the choice");
    const { usage } = await chat.completion(C(members));
    equal(usage.completion_tokens, 1, "completion_tokens");
    const { chunks } = await chat.stream(C(members));
    const deltas = chunks.map(({ choices }) => [choices[0].delta, choices[0].finish_reason]);
    const expected = [
      [{ role: "assistant", content: "" }, null],
      [{}, "stop"],
    ];
    equal(deltas, expected, "deltas");
  }),
];
