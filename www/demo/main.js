//! The demo: an app that uses only the public API of the package. This file connects its parts.

import { CurrentModel } from "./current_model.js";
import { byId, copyOnClick } from "./dom.js";
import { EMBEDDED, setUpPicker } from "./model_picker.js";
import { showModel } from "./model_view.js";
import { setUpSampling } from "./sampling.js";
import { serve } from "./serving.js";
import { setUpStorage } from "./storage.js";
import { Writer } from "./writer.js";

const sampling = setUpSampling();
const showStorage = setUpStorage();
const model = new CurrentModel((state) => {
  showModel(state);
  if (state.kind !== "loading") void showStorage();
  writer.refresh();
  if (state.kind === "ready") {
    const say = byId("serving", HTMLElement);
    void serve(state.engine, (text) => {
      say.textContent = text;
    });
  }
});
const writer = new Writer(() => model.engine, sampling.fields);

setUpPicker((choice) => {
  writer.stop();
  void model.load(choice);
});
byId("cancel-load", HTMLButtonElement).addEventListener("click", () => {
  model.cancel();
  // The button disappears. Without this, keyboard users would lose their place.
  byId("load", HTMLButtonElement).focus();
});
copyOnClick(
  byId("copy-code", HTMLButtonElement),
  () => byId("code", HTMLElement).textContent ?? "",
);
// On a phone, the text should be visible first.
byId("sampling-card", HTMLDetailsElement).open = matchMedia("(min-width: 56rem)").matches;

await model.load(EMBEDDED);
