//! The demo: an app that uses only the public API of the package. This file connects its parts.

import { previousLoadCrashed } from "../dist/index.js";
import { Chat } from "./chat/chat.js";
import { chooseSimpleTemplate, chosenTemplate, hasTemplate } from "./chat/template.js";
import { EMBEDDED, forgetDeleted, recallChoice, rememberChoice } from "./models/choice.js";
import { setUpCpuNotice, showCpuNotice } from "./models/cpu_notice.js";
import { CurrentModel } from "./models/current_model.js";
import { ENTRIES } from "./models/entries.js";
import { Gallery } from "./models/gallery.js";
import { setUpActions } from "./models/load_actions.js";
import { downloadedOf } from "./models/places.js";
import { setUpPicker } from "./models/model_picker.js";
import { showModel } from "./models/model_view.js";
import { measuredSpeed, noteSpeed } from "./models/speed.js";
import { deleteStored, setUpStorage } from "./models/storage.js";
import { byId } from "./page/dom.js";
import { isImage } from "./page/images.js";
import { setUpSample } from "./page/sample.js";
import { setUpSampling } from "./page/sampling.js";
import { setUpTabs } from "./page/tabs.js";
import { Search } from "./search/search.js";
import { serve } from "./serving.js";
import { setUpTour } from "./write/tour.js";
import { Writer } from "./write/writer.js";

/**
 * @import { CachedFile } from "../dist/index.js"
 * @import { ChatModel } from "./chat/chat.js"
 * @import { Choice } from "./models/choice.js"
 * @import { State } from "./models/current_model.js"
 * @import { Measures } from "./page/speed_meter.js"
 */

const CRASHED =
  "The tab ended while it loaded this model, probably because the device has too little memory. Close other tabs and try again, which takes a smaller cache and, if needed, a shorter context. Or use the CPU, or a smaller model";

/** @type {ChatModel | undefined} */
let chatModel;
/** The choice that was loaded last. */
let choice = EMBEDDED;
/** Whether the model of the page answers, and no other one is loaded or waits. */
let isReady = false;

const tabs = setUpTabs((name) => {
  sample.show(name);
  if (name === "search") search.start();
});
const sampling = setUpSampling();
const showFiles = setUpStorage(deleted);
setUpCpuNotice();
const model = new CurrentModel((state) => {
  showModel(state);
  showActions(state);
  isReady = state.kind === "ready";
  // The model that still answers is the one that comes back.
  if (state.kind === "failed" && model.choice) rememberChoice(model.choice);
  if (state.kind !== "loading" || state.progress === undefined) void showStorage();
  writer.refresh();
  if (state.kind === "ready") {
    showCpuNotice(state.info, measuredSpeed(state.info, state.name));
    showTour(model.choice?.option === "embedded");
    sample.setModel(model.choice ?? EMBEDDED);
    const entry = ENTRIES.find(({ choice: { name } }) => name === state.name);
    sampling.setDefaults(entry?.sampling);
    const say = byId("serving", HTMLElement);
    void serve(state.engine, (text) => {
      say.textContent = text;
    });
  }
  void showChat(state);
});
const showActions = setUpActions({
  pause() {
    rememberChoice(choice, { isPaused: true });
    model.pause();
  },
  cancel() {
    rememberChoice(model.choice ?? EMBEDDED);
    model.cancel();
  },
  resume: () => void load(choice),
  useCpu: () => void load({ ...choice, device: "cpu" }),
  chooseOther: () => showModels("chat"),
  discard: () => void discard(choice),
  chooseFile: () => {
    tabs.show("models");
    askForFile();
  },
  useEmbedded: () => void load(EMBEDDED),
});
const writer = new Writer(
  () => model.engine,
  () => model.engineOfImages,
  sampling.fields,
  (fields) => sample.setRequest("write", fields),
  measured,
);
const chat = new Chat(
  () => chatModel,
  sampling.fields,
  (fields) => sample.setRequest("chat", fields),
  measured,
);
const search = new Search(
  (fields, used) => sample.setRequest("search", fields, used),
  () => void showStorage(),
);
const gallery = new Gallery({
  use(chosen) {
    tabs.show("chat");
    void load(chosen);
  },
  useForSearch(chosen) {
    tabs.show("search");
    void search.model.load(chosen);
  },
  useToRank(chosen) {
    tabs.show("search");
    void search.ranker.load(chosen);
  },
  onDeleted: deleted,
});
const sample = setUpSample(tabs.shown);
const showTour = setUpTour({
  pickExample: () => writer.pickExample(),
  generate: () => void writer.generate(),
  showModels: () => showModels("chat"),
});

/** Shows which models are stored and in use, and how fast they are. */
async function showStorage() {
  const { model: finder, ranker } = search;
  const used = [isReady ? model.choice?.name : undefined, finder.choice?.name, ranker.choice?.name];
  await Promise.all([showFiles(), gallery.refresh(used, model.info)]);
}

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

/** @param {Measures} measures of an answer */
function measured({ decodeRate, usage }) {
  const { name } = model.choice ?? EMBEDDED;
  noteSpeed(model.info, name, decodeRate, usage?.completion_tokens ?? 0);
  showCpuNotice(model.info, measuredSpeed(model.info, name));
  // The cards of the models have speeds.
  void showStorage();
}

/** @param {Choice} chosen */
function load(chosen) {
  choice = chosen;
  rememberChoice(chosen);
  writer.stop();
  chat.stop();
  return model.load({ ...chosen, chatTemplate: chosenTemplate(chosen.name) });
}

/** Whether the last load of a model ended with its tab. @param {Choice} chosen */
async function hasCrashed({ option, device }) {
  const options = { model: option, ...(device !== undefined && { device }) };
  return (await previousLoadCrashed(options).catch(() => undefined)) !== undefined;
}

/** Forgets deleted models, so that the next visit does not download them again. @param {CachedFile[]} files */
function deleted(files) {
  forgetDeleted(files);
  return showStorage();
}

/** Deletes what a paused load has downloaded. @param {Choice} chosen */
async function discard({ option }) {
  rememberChoice(model.choice ?? EMBEDDED);
  if (!(option instanceof Blob)) await deleteStored(/** @type {string} */ (option));
  await showStorage();
  model.reportCurrent();
}

const askForFile = setUpPicker(
  (chosen) => void load(chosen),
  (files) => {
    const images = files.filter(isImage);
    if (tabs.shown === "search") return search.takeFiles(files);
    if (images.length === 0) return files;
    const { images: tray } = tabs.shown === "write" ? writer : chat;
    tray.add(images);
    return [];
  },
);
/** Shows the models for a task. @param {string} task */
function showModels(task) {
  gallery.showTask(task);
  tabs.show("models");
}

byId("chat-simple", HTMLButtonElement).addEventListener("click", () => {
  chooseSimpleTemplate(choice.name);
  void load(choice);
});
byId("chat-choose", HTMLButtonElement).addEventListener("click", () => showModels("chat"));
byId("search-choose", HTMLButtonElement).addEventListener("click", () => showModels("embedding"));
byId("rank-choose", HTMLButtonElement).addEventListener("click", () => showModels("rerank"));
byId("chat-stories", HTMLButtonElement).addEventListener("click", () => tabs.show("write"));
// On a phone, the text should be visible first.
byId("sampling-card", HTMLDetailsElement).open = matchMedia("(min-width: 56rem)").matches;

await chat.start();
if (tabs.shown === "search") search.start();
const last = recallChoice();
if (last === undefined) await load(EMBEDDED);
else if ("fileName" in last) model.wait({ kind: "missing", name: last.fileName });
else if (last.isPaused) {
  choice = last.choice;
  const { name } = choice;
  const progress = await downloadedOf(choice);
  model.wait({ kind: "paused", name, choice, progress, remains: undefined });
} else if (await hasCrashed(last.choice)) {
  // Without this, a model that is too large for the device would end the tab at every visit.
  choice = last.choice;
  const { name } = choice;
  const problem = { error: new Error(CRASHED), remains: undefined, hasCrashed: true };
  model.wait({ kind: "failed", name, choice, ...problem });
} else await load(last.choice);
