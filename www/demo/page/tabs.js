//! The tabs of the page: which one is shown, by mouse and keyboard. The last one is shown at the next visit.

import { byId } from "./dom.js";
import { recall, remember } from "./memory.js";

const KEY = "tab";

/** Every tab `NAME-tab` shows the panel `NAME-panel`. */
const NAMES = /** @type {const} */ (["chat", "write", "search", "models"]);

/** @typedef {typeof NAMES[number]} TabName */

/**
 * @typedef {object} Tabs
 * @property {TabName} shown
 * @property {(name: TabName) => void} show shows a tab and moves the focus to it
 */

/**
 * @param {(name: TabName) => void} onShow called with each tab that the user opens
 * @returns {Tabs}
 */
export function setUpTabs(onShow) {
  const buttons = NAMES.map((name) => byId(`${name}-tab`, HTMLButtonElement));
  /** @type {Tabs} */
  const tabs = {
    shown: NAMES.find((name) => name === recall(KEY)) ?? "chat",
    show(name) {
      open(name);
      buttons[NAMES.indexOf(name)]?.focus();
    },
  };
  const draw = () => {
    NAMES.forEach((name, index) => {
      const isShown = name === tabs.shown;
      const button = buttons[index];
      button?.setAttribute("aria-selected", String(isShown));
      // Tab reaches the selected one, the arrow keys the others.
      if (button) button.tabIndex = isShown ? 0 : -1;
      byId(`${name}-panel`, HTMLElement).hidden = !isShown;
    });
    document.body.dataset.tab = tabs.shown;
  };
  /** @param {TabName} name */
  const open = (name) => {
    if (tabs.shown === name) return;
    tabs.shown = name;
    draw();
    remember(KEY, name);
    onShow(name);
  };
  buttons.forEach((button, index) => {
    const openThis = () => open(/** @type {TabName} */ (NAMES[index]));
    button.addEventListener("click", openThis);
    // A notice that appears above the tabs moves them. If it appears while the button is pressed, there is no click.
    button.addEventListener("mousedown", (event) => {
      if (event.button === 0) openThis();
    });
    button.addEventListener("keydown", (event) => {
      const to = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 }[event.key];
      const name = to === undefined ? undefined : NAMES.at(to % NAMES.length);
      if (name === undefined) return;
      event.preventDefault();
      tabs.show(name);
    });
  });
  draw();
  return tabs;
}
