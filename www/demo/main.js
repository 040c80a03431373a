//! The demo: an app that uses only the public API of the package. This file connects its parts.

import { Chat } from "./chat/chat.js";
import { chooseSimpleTemplate, chosenTemplate, hasTemplate } from "./chat/template.js";
import { codeOf } from "./code.js";
import { CurrentModel } from "./current_model.js";
import { byId, copyOnClick } from "./dom.js";
import { EMBEDDED, setUpPicker } from "./model_picker.js";
import { showModel } from "./model_view.js";
import { setUpSampling } from "./sampling.js";
import { serve } from "./serving.js";
import { setUpStorage } from "./storage.js";
import { setUpTabs } from "./tabs.js";
import { Writer } from "./writer.js";

/**
 * @import { ChatModel } from "./chat/chat.js"
 * @import { Choice, State } from "./current_model.js"
 */

/** @type {ChatModel | undefined} */
let chatModel;
/** What was loaded last. */
let choice = EMBEDDED;

setUpTabs();
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
  void showChat(state);
});
const writer = new Writer(
  () => model.engine,
  () => model.engineOfImages,
  sampling.fields,
  (fields) => {
    if (model.choice) byId("code", HTMLElement).textContent = codeOf(model.choice, fields);
  },
);
const chat = new Chat(() => chatModel, sampling.fields);

/** @param {State} state */
async function showChat(state) {
  // A model that was asked about its template may be gone by the time of the answer.
  if (chatModel?.engine !== model.engine) chatModel = undefined;
  if (state.kind === "ready" && chatModel === undefined) {
    const { engine } = state;
    const isSimple = chosenTemplate(state.name) !== undefined;
    const takesImages = Boolean(state.info.projector);
    const found = { engine, isSimple, takesImages, hasTemplate: await hasTemplate(engine) };
    if (model.engine !== engine) return;
    chatModel = found;
  }
  chat.refresh();
}

/** @param {Choice} chosen */
function load(chosen) {
  choice = chosen;
  writer.stop();
  chat.stop();
  return model.load({ ...chosen, chatTemplate: chosenTemplate(chosen.name) });
}

setUpPicker(
  (chosen) => void load(chosen),
  (files) => {
    const { images } = byId("write-panel", HTMLElement).hidden ? chat : writer;
    images.add(files);
  },
);
byId("chat-simple", HTMLButtonElement).addEventListener("click", () => {
  chooseSimpleTemplate(choice.name);
  void load(choice);
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

await chat.start();
await load(EMBEDDED);
