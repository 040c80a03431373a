//! Asks before a download: its size, where it comes from, and what it needs.

import { cache } from "../../dist/index.js";
import { byId } from "../page/dom.js";
import { bytesInWords } from "../page/words.js";

/**
 * @import { Advice } from "./advice.js"
 * @import { Entry, Stored } from "./entries.js"
 */

/**
 * @param {Entry} entry
 * @param {Stored} stored
 * @param {Advice | undefined} advice
 * @returns {Promise<boolean>} whether the user wants it
 */
export async function consent(entry, stored, advice) {
  const { title, bytes, places, memoryBytes, licence } = entry;
  const restBytes = Math.max(0, bytes - (stored.kind === "none" ? 0 : stored.bytes));
  const host = new URL(places[0] ?? location.href).host;
  const parts = [
    `${bytesInWords(restBytes)} from ${host}. They stay in this browser until you delete them.`,
  ];
  if (memoryBytes !== undefined)
    parts.push(`The model takes ${bytesInWords(memoryBytes)} of memory while it is in use.`);
  parts.push(`Licence: ${licence}.`);
  const dialog = byId("ask", HTMLDialogElement);
  byId("ask-title", HTMLElement).textContent = `Download ${title}?`;
  byId("ask-text", HTMLElement).textContent = parts.join(" ");
  const warnings = [];
  if (advice?.obstacles.length)
    warnings.push(`It may not fit here: it ${advice.obstacles.join("; it ")}.`);
  const { quotaBytes, siteBytes = 0 } = await cache.size();
  if (quotaBytes !== undefined && quotaBytes - siteBytes < restBytes) {
    const room = bytesInWords(Math.max(0, quotaBytes - siteBytes));
    warnings.push(`The browser lets this site store ${room} more: the model will not be stored.`);
  }
  const warning = byId("ask-warning", HTMLElement);
  warning.textContent = warnings.join(" ");
  warning.hidden = warnings.length === 0;
  dialog.showModal();
  return new Promise((resolve) => {
    const end = () => resolve(dialog.returnValue === "yes");
    dialog.returnValue = "";
    dialog.addEventListener("close", end, { once: true });
    byId("ask-yes", HTMLButtonElement).onclick = () => dialog.close("yes");
    byId("ask-no", HTMLButtonElement).onclick = () => dialog.close("");
  });
}
