//! Whether the model has a chat template, and a simple one for models that have none.

import { recall, remember } from "../page/memory.js";

/** @import { Engine } from "../../dist/index.js" */

/** A conversation as a transcript. A model that was never trained for conversations can continue it. */
const SIMPLE_TEMPLATE = `{% macro text(content) %}{% if content is string %}{{ content }}{% else %}{% for part in content %}{% if part.type == "image" %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endmacro %}{% for message in messages %}{% if message.role == "system" %}{{ message.content }}

{% elif message.role == "user" %}User: {{ text(message.content) }}
{% else %}Assistant: {{ message.content }}
{% endif %}{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}`;

/** The transcript goes on with the user, which the model must not write. */
const SIMPLE_STOP = ["\nUser:", "\nAssistant:"];

const KEY = "simple-template";

/** The model with the simple template, if any. The page works without storage, too. */
let modelWithSimple = recall(KEY);

/**
 * The template that the user chose for a model, if any.
 *
 * @param {string} modelName
 */
export function chosenTemplate(modelName) {
  return modelWithSimple === modelName ? SIMPLE_TEMPLATE : undefined;
}

/** @param {string} modelName the model for which the simple template is used from now on */
export function chooseSimpleTemplate(modelName) {
  modelWithSimple = modelName;
  remember(KEY, modelName);
}

/**
 * The fields of a request that end an answer in time.
 *
 * @param {boolean} isSimple whether the model uses the simple template
 * @param {Record<string, unknown>} fields
 */
export function withStops(isSimple, fields) {
  if (!isSimple) return fields;
  const given = Array.isArray(fields.stop) ? fields.stop : [];
  // The endpoint takes at most four.
  return { ...fields, stop: [...SIMPLE_STOP, ...given].slice(0, 4) };
}

/**
 * @param {Engine} engine
 * @returns {Promise<boolean>} false if the model's files have no chat template
 */
export async function hasTemplate(engine) {
  try {
    await engine.applyTemplate([{ role: "user", content: "Hello" }]);
    return true;
  } catch (error) {
    const { code, param } = Object(error);
    return !(code === "unsupported_parameter" && param === "messages");
  }
}
