//! Chooses a model of the user's own: a local file (picked or dropped on the page), or a URL.

import { byId } from "../page/dom.js";
import { recall, remember } from "../page/memory.js";
import { fileNameIn } from "../page/words.js";

/** @import { Choice } from "./choice.js" */

/**
 * @param {(choice: Choice) => void} choose called with each model that the user chooses
 * @param {(files: File[]) => File[]} takeOthers called with files that are dropped on the page, returns those that may be a model
 * @returns {() => void} asks for a file
 */
export function setUpPicker(choose, takeOthers) {
  const form = byId("picker", HTMLFormElement);
  const file = byId("model-file", HTMLInputElement);
  const url = byId("model-url", HTMLInputElement);
  const projectorFile = byId("projector-file", HTMLInputElement);
  const projectorUrl = byId("projector-url", HTMLInputElement);
  const source = () => String(new FormData(form).get("source"));

  const showInputs = () => {
    file.hidden = source() !== "file";
    url.hidden = source() !== "url";
    url.required = source() === "url";
    projectorFile.hidden = source() !== "file";
    projectorUrl.hidden = source() !== "url";
  };
  /** @param {File | undefined} chosen */
  const chooseFile = (chosen) => {
    const projector = projectorFile.files?.[0];
    if (chosen) choose({ name: chosen.name, option: chosen, projector });
  };

  form.addEventListener("change", showInputs);
  file.addEventListener("change", () => chooseFile(file.files?.[0]));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (source() === "url") {
      remember("model-url", url.value);
      remember("projector-url", projectorUrl.value);
      const projector = projectorUrl.value === "" ? undefined : { url: projectorUrl.value };
      choose({ name: fileNameIn(url.value), option: { url: url.value }, projector });
    } else if (file.files?.[0]) chooseFile(file.files[0]);
    else file.showPicker();
  });
  url.value = recall("model-url") ?? "";
  projectorUrl.value = recall("projector-url") ?? "";

  const selectFile = () => {
    const radio = form.querySelector('input[value="file"]');
    if (radio instanceof HTMLInputElement) radio.checked = true;
    showInputs();
  };
  acceptDrops((dropped) => {
    const files = takeOthers([...dropped]);
    if (files.length === 0) return;
    // Shows the dropped file in the form. A script can set a file input only from a DataTransfer.
    const models = files.filter(({ name }) => /\.gguf$/i.test(name));
    const tower = models.find(({ name }) => /mmproj/i.test(name));
    const chosen = models.find((it) => it !== tower) ?? (tower ? undefined : files[0]);
    if (tower) projectorFile.files = listOf(tower);
    if (chosen) file.files = listOf(chosen);
    selectFile();
    chooseFile(chosen);
  });
  showInputs();
  return () => {
    selectFile();
    file.click();
  };
}

/** @param {File} file */
function listOf(file) {
  const list = new DataTransfer();
  list.items.add(file);
  return list.files;
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
