//! Detects whether this browser can run an engine, and explains what to do if it cannot.

/**
 * Why WebGPU is not available here; `undefined` if it is.
 *
 * @returns {Promise<{ what: string, remedies: string[] } | undefined>}
 */
export async function missingWebGpu() {
  if (!window.isSecureContext) {
    return {
      what: "Browsers offer WebGPU only to secure pages, and this page was loaded over plain http.",
      remedies: ["Open it over https or from localhost."],
    };
  }
  const gpu = /** @type {{ requestAdapter(): Promise<unknown> } | undefined} */ (
    /** @type {{ gpu?: unknown }} */ (navigator).gpu
  );
  if (gpu === undefined) {
    return {
      what: "This browser has no WebGPU, which the engine needs. These browsers have it:",
      remedies: [
        "Chrome or Edge 113 or newer on Windows, macOS or ChromeOS; 121 or newer on Android 12 or newer.",
        "Safari 26 or newer on macOS, iOS, iPadOS and visionOS.",
        "Firefox 141 or newer on Windows, 145 or newer on a Mac with Apple silicon.",
        ...LINUX,
      ],
    };
  }
  const adapter = await gpu.requestAdapter().catch(() => null);
  if (adapter !== null) return undefined;
  return {
    what: "This browser supports WebGPU, but found no GPU that it can use.",
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
 * Shows it in `notice`.
 *
 * @param {HTMLElement} notice
 * @param {{ what: string, remedies: string[] }} missing
 */
export function showMissing(notice, { what, remedies }) {
  const strong = document.createElement("strong");
  strong.textContent = what;
  const list = document.createElement("ul");
  for (const remedy of remedies) {
    const item = document.createElement("li");
    item.textContent = remedy;
    list.append(item);
  }
  notice.replaceChildren(strong, list);
  notice.hidden = false;
}
