//! Shows the state of the model and its device.

import { byId, showText } from "../page/dom.js";
import { bytesInWords, durationInWords, errorInWords } from "../page/words.js";

/**
 * @import { EngineInfo, LoadProgress } from "../../dist/index.js"
 * @import { State } from "./current_model.js"
 */

/** @param {State} state */
export function showModel(state) {
  byId("model-dot", HTMLElement).className = `dot ${state.kind}`;
  byId("model-name", HTMLElement).textContent = "name" in state ? state.name : "";
  byId("loading", HTMLElement).hidden = state.kind !== "loading" && state.kind !== "paused";
  if (state.kind === "loading") showProgress(state.progress);
  if (state.kind === "paused") showPause(state.progress);
  const notice = byId("notice-model", HTMLElement);
  showText(notice, problem(state));
  if (state.kind === "failed") notice.scrollIntoView({ block: "nearest" });
  const words = byId("model-state", HTMLElement);
  // Screen readers announce every assignment, so assign only changes.
  if (words.textContent !== inWords(state)) words.textContent = inWords(state);
  if (state.kind === "ready") showDevice(state.info);
}

/** @param {State} state */
function inWords(state) {
  switch (state.kind) {
    case "loading":
      return "is loading";
    case "ready":
      return "is ready";
    case "paused":
      return "is paused";
    case "failed":
      return "could not be loaded";
    case "missing":
      return "must be chosen again";
    case "none":
      return "No model is loaded.";
  }
}

/** @param {State} state */
function problem(state) {
  if (state.kind === "missing") {
    return `${state.name} is a file on this device. Browsers do not let a page open a file again by itself.`;
  }
  if (state.kind !== "failed") return undefined;
  const remains = state.remains ? ` Meanwhile, ${state.remains} keeps answering.` : "";
  return errorInWords(state.error) + remains;
}

/** @param {Partial<LoadProgress>} progress */
function showBar({ loadedBytes = 0, totalBytes }) {
  const bar = byId("progress", HTMLProgressElement);
  // Without a value, the bar is indeterminate.
  if (totalBytes) bar.value = loadedBytes / totalBytes;
  else bar.removeAttribute("value");
}

/** @param {LoadProgress | undefined} progress */
function showPause(progress) {
  showBar({ loadedBytes: 0, totalBytes: 1, ...progress });
  const words = progress ? `${amountOf(progress)} downloaded` : "";
  byId("progress-text", HTMLElement).textContent = words;
}

/** @param {Partial<LoadProgress>} progress */
function amountOf({ loadedBytes = 0, totalBytes }) {
  const loaded = bytesInWords(loadedBytes);
  return totalBytes === undefined ? loaded : `${loaded} of ${bytesInWords(totalBytes)}`;
}

/** @param {LoadProgress | undefined} progress */
function showProgress(progress) {
  showBar(progress ?? {});
  byId("progress-text", HTMLElement).textContent = progressInWords(progress);
}

/**
 * The phase of a load, with its rate and the time that is left.
 *
 * @param {LoadProgress | undefined} progress
 */
export function progressInWords(progress) {
  const { phase = "start", loadedBytes, totalBytes, bytesPerSecond, remainingMs } = progress ?? {};
  const amount = amountOf(progress ?? {});
  const rate = bytesPerSecond ? `, ${bytesInWords(bytesPerSecond)}/s` : "";
  const rest = remainingMs && remainingMs > 1000 ? `, ${durationInWords(remainingMs)} left` : "";
  const words = {
    start: "starting the engine",
    download: `downloading: ${amount}${rate}${rest}`,
    waiting: `another tab is downloading: ${amount}`,
    load: loadedBytes === totalBytes ? "warming up" : `into memory: ${amount}`,
    ready: "ready",
  };
  return words[phase];
}

/** @param {EngineInfo} info */
function threadsInWords({ threads, isolation, isolationReason }) {
  if (isolation === "frame") return `${threads}, in an isolated frame`;
  return isolationReason ? `${threads} (${isolationReason})` : `${threads}`;
}

/** The changes that made the model fit into memory. @param {EngineInfo} info */
function fitInWords({ fitted }) {
  if (fitted === undefined) return undefined;
  const { kvFormat, contextTokens } = fitted;
  const parts = [kvFormat && `cache in ${kvFormat}`, contextTokens && `context ${contextTokens}`];
  return parts.filter(Boolean).join(", ") || undefined;
}

/** @param {EngineInfo} info */
function showDevice(info) {
  const { fileBytes, layers, contextTokens, architecture } = info;
  const facts = [
    ["Device", `${info.adapter ?? "unknown"}${info.softwareAdapter ? " (software)" : ""}`],
    ["Why not the GPU", info.device === "cpu" && info.deviceReason],
    ["Kernels", info.variant],
    ["Threads", info.device === "cpu" && threadsInWords(info)],
    ["Fitted to memory", fitInWords(info)],
    [
      "Model",
      architecture &&
        `${architecture}, ${layers} layers, ${bytesInWords(Number(fileBytes))}, context ${contextTokens}`,
    ],
  ];
  const list = byId("device", HTMLElement);
  list.replaceChildren();
  for (const [name, value] of facts) {
    if (!value) continue;
    const row = document.createElement("div");
    const term = document.createElement("dt");
    const detail = document.createElement("dd");
    term.textContent = String(name);
    detail.textContent = String(value);
    row.append(term, detail);
    list.append(row);
  }
}
