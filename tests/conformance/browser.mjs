//! Runs the cases in Chromium, through the doors of a page. Serves the package built with hooks and the cases, and
//! forwards the results that the page reports.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { launchChromium } from "../../scripts/chromium.mjs";
import { mustRun, Remediable, root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { bundleSdk } from "../browser/harness.mjs";

const DIST = "www/dist-test";

/** Builds the package with hooks, in a separate folder. */
export async function buildPackage() {
  await mustRun(process.execPath, [join(root, "scripts/build.mjs"), "--test-hooks"]);
  if (!existsSync(join(root, DIST, "index.js"))) {
    throw new Remediable(`${DIST} is missing after the build with --test-hooks`);
  }
}

/**
 * Runs the cases with these ids through `door` ("page" or "sw") on a device of the native server's names; `onResult` is
 * called with each result. A page that computes on the CPU has no WebGPU.
 */
export async function runInBrowser({ door, device, ids, model, onResult }) {
  const folder = temporaryFolder("inpage-conformance-");
  let server;
  let browser;
  try {
    await bundleSdk(join(folder, "openai.js"));
    server = await serve({
      mounts: {
        "/dist/": join(root, DIST, "/"),
        "/sw.js": join(root, DIST, "sw.js"),
        "/conformance/": join(root, "tests/conformance/"),
        "/openai.js": join(folder, "openai.js"),
        "/model.gguf": model,
      },
    });
    browser = await launchChromium(device === "cpu" ? { webgpu: false } : {});
    const page = await browser.newPage();
    if (process.env.INPAGE_VERBOSE) {
      page.on("console", (message) => console.error(`  page: ${message.text()}`));
    }
    const broken = new Promise((_, reject) => page.once("pageerror", reject));
    broken.catch(() => {});
    await page.exposeFunction("report", onResult);
    await page.goto(`${server.origin}/conformance/page.html`);
    await Promise.race([page.waitForFunction(() => window.loaded), broken]);
    const wanted = { door, device: device === "gpu" ? "webgpu" : device, ids };
    await page.evaluate((wanted) => window.runConformance(wanted), wanted);
  } finally {
    await browser?.close();
    await server?.close();
  }
}
