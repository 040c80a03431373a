//! Whether this browser can run an engine at all, and what to do if not.

/**
 * What stands in the way of WebGPU here; `undefined` if nothing does.
 *
 * @returns {Promise<{ what: string, remedies: string[] } | undefined>}
 */
export async function missingWebGpu() {
  if (!window.isSecureContext) {
    return {
      what: "Browsers give WebGPU to secure pages only, and this one came over plain http.",
      remedies: ["Open it over https, or from localhost."],
    };
  }
  const gpu = /** @type {{ requestAdapter(): Promise<unknown> } | undefined} */ (
    /** @type {{ gpu?: unknown }} */ (navigator).gpu
  );
  if (gpu === undefined) {
    return {
      what: "This browser has no WebGPU, which the engine computes on. These have it:",
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
    what: "This browser has WebGPU, but found no GPU that it may use.",
    remedies: [
      "Switch hardware acceleration on in the browser's settings and start the browser anew.",
      "Update the graphics driver. The page chrome://gpu (about:support in Firefox) says what the browser blocks.",
      ...LINUX,
    ],
  };
}

const LINUX = [
  "Chrome on Linux, where WebGPU is not on by itself: switch on chrome://flags/#enable-unsafe-webgpu and chrome://flags/#enable-vulkan.",
];

/**
 * Writes it into `notice`.
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
