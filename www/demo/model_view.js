//! Shows the state of the model and its device.

import { byId, showText } from "./dom.js";
import { explainCpu } from "./webgpu.js";
import { bytesInWords, durationInWords, errorInWords } from "./words.js";

/**
 * @import { EngineInfo, LoadProgress } from "../dist/index.js"
 * @import { State } from "./current_model.js"
 */

/** @param {State} state */
export function showModel(state) {
  byId("model-dot", HTMLElement).className = `dot ${state.kind}`;
  byId("model-name", HTMLElement).textContent = "name" in state ? state.name : "";
  byId("loading", HTMLElement).hidden = state.kind !== "loading";
  if (state.kind === "loading") showProgress(state.progress);
  const notice = byId("notice-model", HTMLElement);
  showText(notice, failure(state));
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
    case "failed":
      return "could not be loaded";
    case "none":
      return "No model is loaded.";
  }
}

/** @param {State} state */
function failure(state) {
  if (state.kind !== "failed") return undefined;
  const remains = state.remains ? ` Meanwhile, ${state.remains} keeps answering.` : "";
  return errorInWords(state.error) + remains;
}

/** @param {LoadProgress | undefined} progress */
function showProgress(progress) {
  const bar = byId("progress", HTMLProgressElement);
  const {
    phase = "start",
    loadedBytes = 0,
    totalBytes,
    bytesPerSecond,
    remainingMs,
  } = progress ?? {};
  // Without a value, the bar is indeterminate.
  if (totalBytes) bar.value = loadedBytes / totalBytes;
  else bar.removeAttribute("value");
  const amount =
    totalBytes === undefined
      ? bytesInWords(loadedBytes)
      : `${bytesInWords(loadedBytes)} of ${bytesInWords(totalBytes)}`;
  const rate = bytesPerSecond ? `, ${bytesInWords(bytesPerSecond)}/s` : "";
  const rest = remainingMs && remainingMs > 1000 ? `, ${durationInWords(remainingMs)} left` : "";
  const words = {
    start: "starting the engine",
    download: `downloading: ${amount}${rate}${rest}`,
    waiting: `another tab is downloading: ${amount}`,
    load: loadedBytes === totalBytes ? "warming up" : `into memory: ${amount}`,
    ready: "ready",
  };
  byId("progress-text", HTMLElement).textContent = words[phase];
}

/** @param {EngineInfo} info */
function threadsInWords({ threads, isolation, isolationReason }) {
  if (isolation === "frame") return `${threads}, in an isolated frame`;
  return isolationReason ? `${threads} (${isolationReason})` : `${threads}`;
}

/** @param {EngineInfo} info */
function showDevice(info) {
  const notice = byId("notice-cpu", HTMLElement);
  if (info.device === "cpu") void explainCpu(notice, info.deviceReason ?? undefined);
  else notice.hidden = true;
  const { fileBytes, layers, contextTokens, architecture } = info;
  const facts = [
    ["Device", `${info.adapter ?? "unknown"}${info.softwareAdapter ? " (software)" : ""}`],
    ["Kernels", info.variant],
    ["Threads", info.device === "cpu" && threadsInWords(info)],
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
