//! The example code of the page: a program that does what the shown tab has done last, with the OpenAI SDK.

import { EMBEDDED } from "../models/choice.js";
import { codeOf } from "./code.js";
import { byId, copyOnClick } from "./dom.js";

/**
 * @import { Choice } from "../models/choice.js"
 * @import { Kind } from "./code.js"
 * @import { TabName } from "./tabs.js"
 *
 * @typedef {"chat" | "write" | "search"} Sampled
 */

/** The requests of each tab before the user has done anything. @type {Record<Sampled, Record<string, unknown>>} */
const FIRST = {
  chat: { messages: [{ role: "user", content: "Name three rivers." }] },
  write: { prompt: "Once upon a time", max_tokens: 64 },
  search: { input: ["a text", "another text"] },
};

/** @type {Record<Sampled, Kind>} */
const KINDS = { chat: "chat", write: "completion", search: "embeddings" };

/** @param {TabName} first the tab that is shown */
export function setUpSample(first) {
  const requests = { ...FIRST };
  /** @type {Choice} */
  let model = EMBEDDED;
  /** @type {Choice | undefined} */
  let searchModel;
  /** @type {Sampled} */
  let shown = sampled(first);
  const draw = () => {
    const used = shown === "search" ? (searchModel ?? model) : model;
    byId("code", HTMLElement).textContent = codeOf(KINDS[shown], used, requests[shown]);
  };
  copyOnClick(
    byId("copy-code", HTMLButtonElement),
    () => byId("code", HTMLElement).textContent ?? "",
  );
  draw();
  return {
    /** @param {TabName} tab */
    show(tab) {
      shown = sampled(tab);
      draw();
    },
    /** @param {Choice} used */
    setModel(used) {
      model = used;
      draw();
    },
    /**
     * @param {Sampled} tab
     * @param {Record<string, unknown>} fields of its last request
     * @param {Choice} [used] the model, if it is not the one of the page
     */
    setRequest(tab, fields, used) {
      requests[tab] = fields;
      if (used) searchModel = used;
      draw();
    },
  };
}

/** The list of models requests nothing: the code of a chat is beside it. @param {TabName} tab @returns {Sampled} */
const sampled = (tab) => (tab === "models" ? "chat" : tab);
