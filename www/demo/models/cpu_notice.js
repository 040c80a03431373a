//! Says that the model runs on the CPU: how fast it is, why, and what to do about it. The user can dismiss it.

import { byId } from "../page/dom.js";
import { recall, remember } from "../page/memory.js";
import { rateInWords } from "../page/words.js";
import { READING_RATE } from "./speed.js";

/** @import { EngineInfo } from "../../dist/index.js" */

const DISMISSED = "cpu-notice-dismissed";

const LINUX = [
  "Chrome on Linux, where WebGPU is off by default: enable chrome://flags/#enable-unsafe-webgpu and chrome://flags/#enable-vulkan.",
];

/**
 * The likely reason why this browser offers no GPU, and what to do about it.
 *
 * @returns {{ what: string, remedies: string[] }}
 */
function missingGpu() {
  if (!window.isSecureContext) {
    return {
      what: "Browsers offer WebGPU only to secure pages, and this page was loaded over plain http.",
      remedies: ["Open it over https or from localhost."],
    };
  }
  if (!("gpu" in navigator) || navigator.gpu === undefined) {
    return {
      what: "This browser has no WebGPU. These browsers have it, and can use a GPU:",
      remedies: [
        "Chrome or Edge 113 or newer on Windows, macOS or ChromeOS; 121 or newer on Android 12 or newer.",
        "Safari 26 or newer on macOS, iOS, iPadOS and visionOS.",
        "Firefox 141 or newer on Windows, 145 or newer on a Mac with Apple silicon.",
        ...LINUX,
      ],
    };
  }
  return {
    what: "This browser supports WebGPU, but found no GPU that the model can use.",
    remedies: [
      "Turn on hardware acceleration in the browser's settings and restart the browser.",
      "Update the graphics driver. chrome://gpu (about:support in Firefox) shows what the browser blocks.",
      ...LINUX,
    ],
  };
}

export function setUpCpuNotice() {
  byId("cpu-dismiss", HTMLButtonElement).addEventListener("click", () => {
    remember(DISMISSED, "yes");
    byId("notice-cpu", HTMLElement).hidden = true;
    byId("content", HTMLElement).focus();
  });
}

/**
 * Shows the notice if the model runs on the CPU.
 *
 * @param {EngineInfo} info
 * @param {number | undefined} rate measured tokens per second
 */
export function showCpuNotice(info, rate) {
  const notice = byId("notice-cpu", HTMLElement);
  notice.hidden = info.device !== "cpu" || recall(DISMISSED) !== undefined;
  if (notice.hidden) return;
  const isSlow = rate !== undefined && rate < READING_RATE;
  notice.classList.toggle("calm", !isSlow);
  const { what, remedies } = missingGpu();
  const words = speedInWords(rate);
  const state = byId("cpu-speed", HTMLElement);
  // Screen readers announce every assignment.
  if (state.textContent !== words) state.textContent = words;
  byId("cpu-why", HTMLElement).textContent = what;
  byId("cpu-remedies", HTMLElement).replaceChildren(
    ...remedies.map((remedy) => {
      const item = document.createElement("li");
      item.textContent = remedy;
      return item;
    }),
  );
}

/** @param {number | undefined} rate */
function speedInWords(rate) {
  if (rate === undefined) return "The model runs on the CPU of this device.";
  const measured = `The model runs on the CPU and writes ${rateInWords(rate)}`;
  if (rate >= READING_RATE) return `${measured}, faster than people read.`;
  return `${measured}, which is slow. A smaller model or a GPU is faster.`;
}
