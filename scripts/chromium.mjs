//! Starts headless Chromium with WebGPU: on the real GPU where there is one, else on the software adapter.
//! For the command line and the browser tests; needs the npm dependencies to be there.

import { existsSync, readdirSync } from "node:fs";
import { provideBrowser } from "./setup/browser.mjs";
import { Remediable } from "./process.mjs";
import { serve } from "./server.mjs";

const COMMON = [
  "--enable-unsafe-webgpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-quic",
  "--disable-sync",
];
const SOFTWARE = ["--use-webgpu-adapter=swiftshader"];
// On Linux, Chromium keeps WebGPU on Vulkan behind these.
const HARDWARE =
  process.platform === "linux"
    ? ["--enable-features=Vulkan", "--use-angle=vulkan", "--ignore-gpu-blocklist"]
    : [];

/** Whether a GPU may be there; only Linux can tell without asking a browser. */
function mayHaveGpu() {
  if (process.env.INPAGE_ADAPTER === "software") return false;
  if (process.platform !== "linux") return true;
  const render =
    existsSync("/dev/dri") && readdirSync("/dev/dri").some((name) => name.startsWith("renderD"));
  return render || existsSync("/dev/nvidia0") || existsSync("/dev/dxg");
}

async function hasAdapter(browser) {
  // WebGPU exists on trustworthy origins only, and the loopback address is one.
  const server = await serve({ mounts: {}, pages: { "/": "<!doctype html>" } });
  const page = await browser.newPage();
  try {
    await page.goto(server.origin);
    return await page.evaluate(async () => (await navigator.gpu?.requestAdapter()) != null);
  } catch {
    return false;
  } finally {
    await page.close();
    await server.close();
  }
}

/** A playwright `Browser`. INPAGE_ADAPTER=software passes over a real GPU; CHROMIUM names the program. */
export async function launchChromium({ args = [], headless = true } = {}) {
  const executablePath = await provideBrowser();
  const { chromium } = await import("playwright-core");
  const launch = async (adapter) => {
    try {
      return await chromium.launch({
        executablePath,
        headless,
        // Chromium refuses its sandbox to root; everybody else keeps it.
        chromiumSandbox: process.getuid?.() !== 0,
        args: [...COMMON, ...adapter, ...args],
      });
    } catch (error) {
      throw new Remediable(
        `the browser ${executablePath} does not start: ${error.message}`,
        "Set CHROMIUM to the program file of another Chrome, Chromium or Edge.",
      );
    }
  };
  if (mayHaveGpu()) {
    const browser = await launch(HARDWARE);
    if (await hasAdapter(browser)) return browser;
    await browser.close();
  }
  return launch(SOFTWARE);
}
