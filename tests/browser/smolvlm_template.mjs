//! The chat template of SmolVLM, with images. The small models of the tests have none.

export const CHAT_TEMPLATE =
  "<|im_start|>{% for message in messages %}{{ message.role | capitalize }}:{% if message.content is string %} " +
  "{{ message.content }}{% else %}{% for part in message.content %}{% if part.type == 'image' %}<image>{% else %}" +
  "{{ part.text }}{% endif %}{% endfor %}{% endif %}<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}";
