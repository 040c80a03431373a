//! Chooses a model: the embedded one, a local file (picked or dropped on the page), or a URL.

import { byId } from "./dom.js";
import { recall, remember } from "./memory.js";
import { fileNameIn } from "./words.js";

/** @import { Choice } from "./current_model.js" */

/** @type {Choice} */
export const EMBEDDED = { name: "tales", option: "embedded" };

/** @param {(choice: Choice) => void} choose called with each model that the user chooses */
export function setUpPicker(choose) {
  const form = byId("picker", HTMLFormElement);
  const file = byId("model-file", HTMLInputElement);
  const url = byId("model-url", HTMLInputElement);
  const source = () => String(new FormData(form).get("source"));

  const showInputs = () => {
    file.hidden = source() !== "file";
    url.hidden = source() !== "url";
    url.required = source() === "url";
  };
  /** @param {File | undefined} chosen */
  const chooseFile = (chosen) => {
    if (chosen) choose({ name: chosen.name, option: chosen });
  };

  form.addEventListener("change", showInputs);
  file.addEventListener("change", () => chooseFile(file.files?.[0]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (source() === "embedded") choose(EMBEDDED);
    else if (source() === "url") {
      remember("model-url", url.value);
      choose({ name: fileNameIn(url.value), option: { url: url.value } });
    } else if (file.files?.[0]) chooseFile(file.files[0]);
    else file.showPicker();
  });
  url.value = recall("model-url") ?? "";

  acceptDrops((files) => {
    // Shows the dropped file in the form. A script can set a file input only from a DataTransfer.
    const chosen = [...files].find(({ name }) => /\.gguf$/i.test(name)) ?? files[0];
    const list = new DataTransfer();
    if (chosen) list.items.add(chosen);
    file.files = list.files;
    const radio = form.querySelector('input[value="file"]');
    if (radio instanceof HTMLInputElement) radio.checked = true;
    showInputs();
    chooseFile(chosen);
  });
  showInputs();
}

/** @param {(files: FileList) => void} take */
function acceptDrops(take) {
  const overlay = byId("drop", HTMLElement);
  /** @param {DragEvent} event */
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    // Without this, the browser would open the file instead of the page.
    event.preventDefault();
    overlay.hidden = false;
  });
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) overlay.hidden = true;
  });
  addEventListener("drop", (event) => {
    overlay.hidden = true;
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    take(event.dataTransfer.files);
  });
}
