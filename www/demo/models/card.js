//! The card of a model in the gallery: what it is, what it costs, and what can be done with it.

import { bytesInWords, rateInWords } from "../page/words.js";

/**
 * @import { Advice } from "./advice.js"
 * @import { Entry, Stored } from "./entries.js"
 *
 * @typedef {object} CardState
 * @property {Stored} stored
 * @property {boolean} isCurrent
 * @property {number | undefined} measured tokens per second of answers on this device
 * @property {Advice | undefined} advice
 *
 * @typedef {object} CardActions
 * @property {(entry: Entry) => void} use
 * @property {(entry: Entry) => void} remove
 */

/**
 * @param {Entry} entry
 * @param {CardState} state
 * @param {CardActions} actions
 * @returns {HTMLLIElement}
 */
export function cardOf(entry, state, actions) {
  const { title, goodFor, name } = entry;
  const { stored, isCurrent } = state;
  const card = document.createElement("li");
  card.className = isCurrent ? "model current" : "model";
  card.dataset.model = name;
  const heading = element("h3", title);
  for (const words of badgesOf(entry, state)) heading.append(" ", badge(words));
  const facts = document.createElement("dl");
  for (const [term, detail] of factsOf(entry, state)) {
    facts.append(element("dt", term), element("dd", detail));
  }
  const buttons = document.createElement("div");
  buttons.className = "buttons";
  const use = button(labelOf(entry, stored), `${labelOf(entry, stored)}: ${title}`, () =>
    actions.use(entry),
  );
  if (!isCurrent) buttons.append(use);
  if (stored.kind !== "none") {
    buttons.append(button("Delete", `Delete ${title}`, () => actions.remove(entry), "quiet"));
  }
  card.append(heading, element("p", goodFor), facts, buttons);
  return card;
}

/** @param {Entry} entry @param {CardState} state */
function badgesOf({ bytes }, { stored, isCurrent }) {
  const badges = isCurrent ? ["in use"] : [];
  if (stored.kind === "whole") badges.push("stored");
  if (stored.kind === "part") badges.push(`${Math.floor((stored.bytes / bytes) * 100)} % stored`);
  return badges;
}

/**
 * @param {Entry} entry
 * @param {CardState} state
 * @returns {[string, string][]}
 */
function factsOf(entry, { measured, advice }) {
  const { bytes, memoryBytes, tasks, languages, licence } = entry;
  /** @type {[string, string][]} */
  const facts = [["For", tasks.join(", ")]];
  if (bytes > 0) facts.push(["Download", bytesInWords(bytes)]);
  if (memoryBytes !== undefined) {
    const warning = advice?.obstacles.length ? ", may not fit here" : "";
    facts.push(["Memory", `${bytesInWords(memoryBytes)}${warning}`]);
  }
  facts.push(["Languages", languagesInWords(languages)], ["Licence", licence]);
  const rate = measured ?? advice?.rate;
  if (rate !== undefined && !isForSearch(tasks)) {
    facts.push(["Speed here", `${measured === undefined ? "about " : ""}${rateInWords(rate)}`]);
  }
  return facts;
}

/** @param {readonly string[]} tags BCP 47 */
function languagesInWords(tags) {
  if (tags.includes("mul")) return "many";
  if (tags.length > 3) return `${tags.length}`;
  const names = new Intl.DisplayNames(["en"], { type: "language" });
  return tags.map((tag) => names.of(tag) ?? tag).join(", ");
}

/** Whether a model finds passages or puts them in order: it writes nothing. @param {readonly string[]} tasks */
const isForSearch = (tasks) => tasks.includes("embedding") || tasks.includes("rerank");

/** @param {Entry} entry @param {Stored} stored */
function labelOf({ tasks, places }, stored) {
  if (places.length === 0 || stored.kind === "whole") {
    return isForSearch(tasks) ? "Use for search" : "Use";
  }
  return stored.kind === "part" ? "Resume" : "Download";
}

/** @param {"h3" | "p" | "dt" | "dd"} name @param {string} text */
function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** @param {string} text */
function badge(text) {
  const made = document.createElement("span");
  made.className = "badge";
  made.textContent = text;
  return made;
}

/**
 * @param {string} text
 * @param {string} label for screen readers, which read it without the card around it
 * @param {() => void} onClick
 * @param {string} [kind]
 */
function button(text, label, onClick, kind = "") {
  const made = document.createElement("button");
  made.type = "button";
  made.className = `small ${kind}`.trim();
  made.textContent = text;
  made.ariaLabel = label;
  made.addEventListener("click", onClick);
  return made;
}
