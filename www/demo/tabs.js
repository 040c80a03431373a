//! The tabs of the page: which one is shown, by mouse and keyboard. The last one is shown at the next visit.

import { byId } from "./dom.js";
import { recall, remember } from "./memory.js";

const KEY = "tab";

/** Every tab `NAME-tab` shows the panel `NAME-panel`. */
const NAMES = ["write", "chat"];

export function setUpTabs() {
  const tabs = NAMES.map((name) => byId(`${name}-tab`, HTMLButtonElement));
  /** @param {number} shown */
  const show = (shown) => {
    tabs.forEach((tab, index) => {
      const isShown = index === shown;
      tab.setAttribute("aria-selected", String(isShown));
      // Tab reaches the selected one, the arrow keys the others.
      tab.tabIndex = isShown ? 0 : -1;
      byId(`${NAMES[index]}-panel`, HTMLElement).hidden = !isShown;
    });
    remember(KEY, NAMES[shown] ?? "");
  };
  tabs.forEach((tab, index) => {
    tab.addEventListener("click", () => show(index));
    tab.addEventListener("keydown", ({ key }) => {
      const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
      if (step === 0) return;
      const next = (index + step + tabs.length) % tabs.length;
      show(next);
      tabs[next]?.focus();
    });
  });
  show(Math.max(NAMES.indexOf(recall(KEY) ?? ""), 0));
}
