//! Checks where the page runs before anything is started or downloaded: secure contexts, WebGPU, workers. Each refusal says
//! what to change.

import { platform } from "../platform.js";
import type { EngineOptions } from "./engine_options.js";
import { InpageError } from "../api/inpage_error.js";

let hasWarned = false;

/**
 * Warns once of a page that is not secure: it works on the CPU, and everything that makes it fast and lasting is missing.
 *
 * @throws InpageError `no_webgpu_device` if the options require WebGPU and there is none; `unsupported_browser` where no
 * worker can be started
 */
export function refusePlace({ device }: EngineOptions): void {
  // A program that is no browser has threads of its own and checks its devices itself.
  if (platform().startThread !== undefined) return;
  if (typeof globalThis.Worker !== "function") {
    throw InpageError.local(
      "unsupported_browser",
      'there are no workers here. In Node 20.3 or newer, Deno and Bun, import "inpage" by its name, so that the entry for them is used, and make bundlers for servers leave it external',
    );
  }
  const { isSecureContext, location, navigator } = globalThis;
  const place = location?.origin ?? "this page";
  const isInsecure = isSecureContext === false;
  if (device === "webgpu" && navigator?.gpu === undefined) {
    throw InpageError.local(
      "no_webgpu_device",
      isInsecure
        ? `there is no WebGPU in this page, because ${place} is not a secure context: ${SECURE}; device "auto" computes on the CPU meanwhile`
        : 'this browser has no WebGPU here (navigator.gpu): use Chrome or Edge 113, Safari 26 or Firefox 141 (on Windows) or newer, and switch on hardware acceleration ("Use graphics acceleration when available" in the settings of Chrome; chrome://gpu shows its state); device "auto" computes on the CPU where there is no WebGPU',
    );
  }
  if (isInsecure && !hasWarned) {
    hasWarned = true;
    console.warn(
      `inpage: ${place} is not a secure context, so there is no WebGPU, models are not kept for the next visit, and tabs share no engine: ${SECURE}`,
    );
  }
}

const SECURE = "serve the page over https, or from http://localhost on the same machine";
