//! The sampling controls as fields of a request. The endpoint validates them.

import { byId } from "./dom.js";
import { recall, remember } from "./memory.js";

const KEY = "sampling";

/** The values of the page, for models whose makers recommend nothing. @type {Record<string, string>} */
const DEFAULTS = { temperature: "0.7", top_p: "0.95", min_p: "0.05", top_k: "" };

/** Fields without a control, which requests have if the makers of the model recommend them. */
const PENALTIES = ["presence_penalty", "repetition_penalty"];

/**
 * @typedef {object} Sampling
 * @property {() => Record<string, unknown>} fields of a request
 * @property {(recommended?: object) => void} setDefaults to be called with what the makers of the model recommend; values
 *   that the user has changed stay
 */

/** @returns {Sampling} */
export function setUpSampling() {
  const form = byId("sampling", HTMLFormElement);
  const showValues = () => {
    for (const input of form.querySelectorAll('input[type="range"]')) {
      const shown = input.parentElement?.querySelector(".value");
      if (shown && input instanceof HTMLInputElement) shown.textContent = input.value;
    }
  };
  const keep = () => {
    showValues();
    remember(KEY, JSON.stringify(Object.fromEntries(new FormData(form))));
  };
  restore(form, recall(KEY));
  form.addEventListener("input", keep);
  form.addEventListener("submit", (event) => event.preventDefault());
  // The fields are reset only after the event.
  form.addEventListener("reset", () => setTimeout(keep));
  showValues();
  /** @type {Record<string, unknown>} */
  let penalties = {};
  return {
    fields: () => ({ ...penalties, ...requestFields(new FormData(form)) }),
    setDefaults(recommended = {}) {
      penalties = Object.fromEntries(
        Object.entries(recommended).filter(([name]) => PENALTIES.includes(name)),
      );
      for (const [name, own] of Object.entries(DEFAULTS)) {
        const input = form.elements.namedItem(name);
        if (!(input instanceof HTMLInputElement)) continue;
        const value = Object(recommended)[name];
        const isUnchanged = input.value === input.defaultValue;
        input.defaultValue = value === undefined ? own : `${value}`;
        if (isUnchanged) input.value = input.defaultValue;
      }
      showValues();
    },
  };
}

/**
 * @param {HTMLFormElement} form
 * @param {string | undefined} json
 */
function restore(form, json) {
  for (const [name, value] of Object.entries(parsed(json))) {
    const control = form.elements.namedItem(name);
    if (control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement) {
      control.value = String(value);
    }
  }
}

/**
 * Anything but a JSON object counts as nothing stored.
 *
 * @param {string | undefined} json
 * @returns {object}
 */
function parsed(json) {
  try {
    return Object(JSON.parse(json ?? "{}"));
  } catch {
    return {};
  }
}

/**
 * Empty controls are omitted, so that the endpoint's defaults apply.
 *
 * @param {FormData} data
 */
function requestFields(data) {
  /** @type {Record<string, unknown>} */
  const fields = {};
  for (const name of ["temperature", "top_p", "min_p", "top_k", "max_tokens"]) {
    const text = String(data.get(name) ?? "");
    if (text !== "") fields[name] = Number(text);
  }
  const seed = String(data.get("seed") ?? "").trim();
  // 64 bits do not fit into a number. Other text is sent as it is, and the endpoint reports the error.
  if (seed !== "") fields.seed = /^-?\d+$/.test(seed) ? BigInt(seed) : seed;
  const stop = String(data.get("stop") ?? "")
    .split(/\r?\n/)
    .filter((line) => line !== "")
    .map((line) => line.replaceAll("\\n", "\n"));
  if (stop.length > 0) fields.stop = stop;
  return fields;
}
