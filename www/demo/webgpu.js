//! Explains why the model runs on the CPU, and what to do about it.

/**
 * Why this browser offers no GPU, and what to do about it.
 *
 * @returns {Promise<{ what: string, remedies: string[] }>}
 */
async function missingGpu() {
  if (!window.isSecureContext) {
    return {
      what: "Browsers offer WebGPU only to secure pages, and this page was loaded over plain http.",
      remedies: ["Open it over https or from localhost."],
    };
  }
  if (!("gpu" in navigator) || navigator.gpu === undefined) {
    return {
      what: "This browser has no WebGPU. These browsers have it, and answer faster on a GPU:",
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

const LINUX = [
  "Chrome on Linux, where WebGPU is off by default: enable chrome://flags/#enable-unsafe-webgpu and chrome://flags/#enable-vulkan.",
];

/**
 * Says in `notice` that the model runs on the CPU, for the engine's own `reason`.
 *
 * @param {HTMLElement} notice
 * @param {string | undefined} reason
 */
export async function explainCpu(notice, reason) {
  const { what, remedies } = await missingGpu();
  const strong = document.createElement("strong");
  strong.textContent = "Running on the CPU.";
  const list = document.createElement("ul");
  for (const remedy of remedies) {
    const item = document.createElement("li");
    item.textContent = remedy;
    list.append(item);
  }
  notice.replaceChildren(strong, ` ${what}${reason ? ` (${reason})` : ""}`, list);
  notice.hidden = false;
}
