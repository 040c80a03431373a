//! Starts headless Chromium with WebGPU, on the real GPU if there is one, else on the software adapter. The npm
//! dependencies must be installed.

import { existsSync, readdirSync } from "node:fs";
import { freePort, recordCoverage } from "./coverage/chromium_coverage.mjs";
import { provideBrowser } from "./setup/browser.mjs";
import { Remediable } from "./process.mjs";
import { serve } from "./server.mjs";

const COMMON = [
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-quic",
  "--disable-sync",
];
const SOFTWARE = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
const WITHOUT_WEBGPU = ["--disable-features=WebGPU,WebGPUService"];
// On Linux, Chromium enables WebGPU on Vulkan only with these flags.
const HARDWARE =
  process.platform === "linux"
    ? [
        "--enable-unsafe-webgpu",
        "--enable-features=Vulkan",
        "--use-angle=vulkan",
        "--ignore-gpu-blocklist",
      ]
    : ["--enable-unsafe-webgpu"];

/** Whether there may be a GPU. Without a browser, this can be ruled out only on Linux. */
function mayHaveGpu() {
  if (process.env.INPAGE_ADAPTER === "software") return false;
  if (process.platform !== "linux") return true;
  const render =
    existsSync("/dev/dri") && readdirSync("/dev/dri").some((name) => name.startsWith("renderD"));
  return render || existsSync("/dev/nvidia0") || existsSync("/dev/dxg");
}

async function hasAdapter(browser) {
  // WebGPU exists only on trustworthy origins; the loopback address is one.
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

/** Records what runs in the browser until it is closed, into the folder that INPAGE_COVERAGE names. */
async function record(browser, port) {
  const coverage = await recordCoverage(port, process.env.INPAGE_COVERAGE);
  const close = browser.close.bind(browser);
  browser.close = async (options) => {
    await coverage.stop();
    await close(options);
  };
}

/**
 * A playwright `Browser`. INPAGE_ADAPTER=software ignores a real GPU; CHROMIUM is the browser's executable.
 * `ignoreDefaultArgs` are arguments of playwright's that are left out. `webgpu: false` starts a browser without WebGPU.
 * `shellSuffices: true` starts the headless shell that INPAGE_HEADLESS_SHELL names, if it is set.
 */
export async function launchChromium({
  args = [],
  headless = true,
  ignoreDefaultArgs = [],
  webgpu = true,
  shellSuffices = false,
} = {}) {
  const shell = shellSuffices ? process.env.INPAGE_HEADLESS_SHELL : undefined;
  const executablePath = shell || (await provideBrowser());
  const { chromium } = await import("playwright-core");
  const port = process.env.INPAGE_COVERAGE ? await freePort() : undefined;
  const debugging = port === undefined ? [] : [`--remote-debugging-port=${port}`];
  const launch = async (adapter) => {
    try {
      const browser = await chromium.launch({
        executablePath,
        headless,
        // Chromium does not start with its sandbox as root.
        chromiumSandbox: process.getuid?.() !== 0,
        args: [...COMMON, ...adapter, ...debugging, ...args],
        ignoreDefaultArgs,
      });
      if (port !== undefined) await record(browser, port);
      return browser;
    } catch (error) {
      throw new Remediable(
        `the browser ${executablePath} does not start: ${error.message}`,
        "Set CHROMIUM to the executable of another Chrome, Chromium or Edge.",
      );
    }
  };
  if (!webgpu) return launch(WITHOUT_WEBGPU);
  if (mayHaveGpu()) {
    const browser = await launch(HARDWARE);
    if (await hasAdapter(browser)) return browser;
    await browser.close();
  }
  return launch(SOFTWARE);
}
