//! A short tour of the embedded model: what it does, how to make it write, and what comes next. Shown once, and on request.

import { byId } from "../page/dom.js";
import { recall, remember } from "../page/memory.js";

const KEY = "tour";

/**
 * The actions of the steps.
 *
 * @typedef {object} Guide
 * @property {() => void} pickExample
 * @property {() => void} generate
 * @property {() => void} showModels
 */

/** @type {{ text: string, button: string, run?: keyof Guide, at?: string }[]} */
const STEPS = [
  {
    text: "This model is part of the page: 2.4 MB that learned to tell stories. It continues a text that you begin.",
    button: "Choose a beginning",
    run: "pickExample",
    at: "prompt",
  },
  {
    text: "The prompt is the beginning of the story. You can change it before the model continues it.",
    button: "Generate",
    run: "generate",
    at: "generate",
  },
  {
    text: "This device wrote the text; no server was asked. The numbers below it say how fast. A higher temperature makes the story more surprising.",
    button: "Next",
  },
  {
    text: "It is too small for conversations. Models that chat, write code or see images are in the list of models.",
    button: "Show the models",
    run: "showModels",
  },
];

/**
 * @param {Guide} guide
 * @returns {(isEmbedded: boolean) => void} to be called when the model changes
 */
export function setUpTour(guide) {
  const tour = byId("tour", HTMLElement);
  const text = byId("tour-text", HTMLElement);
  const count = byId("tour-count", HTMLElement);
  const next = byId("tour-next", HTMLButtonElement);
  const start = byId("tour-start", HTMLButtonElement);
  let step = 0;
  let isEmbedded = false;

  const draw = () => {
    const { text: words, button } = STEPS[step] ?? {};
    text.textContent = words ?? "";
    count.textContent = `${step + 1} of ${STEPS.length}`;
    next.textContent = button ?? "";
  };
  const end = () => {
    remember(KEY, "done");
    tour.hidden = true;
    start.hidden = !isEmbedded;
  };
  next.addEventListener("click", () => {
    const { run, at } = STEPS[step] ?? {};
    step += 1;
    if (step >= STEPS.length) end();
    else draw();
    if (run) guide[run]();
    if (at) byId(at, HTMLElement).scrollIntoView({ block: "nearest" });
  });
  byId("tour-skip", HTMLButtonElement).addEventListener("click", () => {
    end();
    byId("prompt", HTMLElement).focus();
  });
  start.addEventListener("click", () => {
    step = 0;
    draw();
    tour.hidden = false;
    start.hidden = true;
    next.focus();
  });
  return (isEmbeddedNow) => {
    isEmbedded = isEmbeddedNow;
    if (!isEmbedded) tour.hidden = true;
    else if (tour.hidden && recall(KEY) === undefined) {
      step = 0;
      draw();
      tour.hidden = false;
    }
    start.hidden = !isEmbedded || !tour.hidden;
  };
}
