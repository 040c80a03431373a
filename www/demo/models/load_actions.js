//! The buttons beside the state of the model: pause, cancel, resume, delete, try again, and what else there is to do.

import { byId } from "../page/dom.js";

/** @import { State } from "./current_model.js" */

/**
 * @typedef {object} Actions
 * @property {() => void} pause
 * @property {() => void} cancel
 * @property {() => void} resume a paused load, or one that failed
 * @property {() => void} discard deletes what a paused load has downloaded
 * @property {() => void} useCpu loads the model that failed on the CPU
 * @property {() => void} chooseOther shows the models, those that fit the device first
 * @property {() => void} chooseFile the file of the last visit again
 * @property {() => void} useEmbedded
 */

/** The buttons by their ids, and the state in which each is shown. @type {[string, keyof Actions, (state: State) => boolean][]} */
const BUTTONS = [
  ["pause-load", "pause", (state) => state.kind === "loading" && isDownload(state)],
  ["cancel-load", "cancel", ({ kind }) => kind === "loading"],
  ["resume-load", "resume", ({ kind }) => kind === "paused"],
  ["discard-load", "discard", ({ kind }) => kind === "paused"],
  ["retry-load", "resume", ({ kind }) => kind === "failed"],
  ["use-cpu", "useCpu", (state) => hasCrashed(state) && state.choice.device === undefined],
  ["choose-other", "chooseOther", hasCrashed],
  ["choose-file", "chooseFile", ({ kind }) => kind === "missing"],
  ["use-embedded", "useEmbedded", needsModel],
];

/** @param {State} state */
function isDownload(state) {
  return state.kind === "loading" && state.progress?.phase === "download";
}

/**
 * @param {State} state
 * @returns {state is Extract<State, { kind: "failed" }>}
 */
function hasCrashed(state) {
  return state.kind === "failed" && state.hasCrashed === true;
}

/** @param {State} state */
function needsModel(state) {
  if (state.kind === "failed" || state.kind === "paused") return state.remains === undefined;
  return state.kind === "missing" || state.kind === "none";
}

/**
 * @param {Actions} actions
 * @returns {(state: State) => void} to be called with every state of the model
 */
export function setUpActions(actions) {
  for (const [id, action] of BUTTONS) {
    byId(id, HTMLButtonElement).addEventListener("click", () => actions[action]());
  }
  return (state) => {
    const focused = document.activeElement;
    let lostFocus = false;
    /** @type {HTMLButtonElement | undefined} */
    let first;
    for (const [id, , isShown] of BUTTONS) {
      const button = byId(id, HTMLButtonElement);
      lostFocus ||= button === focused && !isShown(state);
      button.hidden = !isShown(state);
      if (!button.hidden) first ??= button;
    }
    // Keyboard users would lose their place.
    if (lostFocus) (first ?? byId("models-tab", HTMLButtonElement)).focus();
  };
}
