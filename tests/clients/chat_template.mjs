//! A chat template for the embedded model, which has none: that of ChatML with tool calls as Hermes writes them.

export const CHAT_TEMPLATE = `{%- if tools %}{{ '<|im_start|>system\n<tools>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}{{ '</tools>\nCall one: <tool_call>{"name": ..., "arguments": ...}</tool_call><|im_end|>\n' }}{% endif %}
{%- for message in messages %}{{ '<|im_start|>' + message.role + '\n' + (message.content or '') }}
{%- for call in message.tool_calls or [] %}{{ '<tool_call>\n' + (call.function | tojson) + '\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`;
