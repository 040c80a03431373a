//! Runs the cases in a browser, through the doors of a page. Serves the package built with hooks and the cases, and
//! forwards the results that the page reports.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { launchChromium } from "../../scripts/chromium.mjs";
import { launchFirefox } from "../../scripts/firefox.mjs";
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

/** The time between two questions to Firefox for new results. */
const POLL_MS = 200;

/**
 * Runs the cases with these ids through `door` ("page" or "sw") of a browser ("chromium" or "firefox") on a device of
 * the native server's names; `onResult` is called with each result. In Chromium, a page that computes on the CPU has no
 * WebGPU.
 */
export async function runInBrowser({ browser, door, device, ids, model, projector, onResult }) {
  const folder = temporaryFolder("inpage-conformance-");
  let server;
  try {
    await bundleSdk(join(folder, "openai.js"));
    server = await serve({
      mounts: {
        "/dist/": join(root, DIST, "/"),
        "/sw.js": join(root, DIST, "sw.js"),
        "/conformance/": join(root, "tests/conformance/"),
        "/openai.js": join(folder, "openai.js"),
        "/model.gguf": model,
        ...(projector && { "/projector.gguf": projector }),
      },
    });
    const url = `${server.origin}/conformance/page.html`;
    const wanted = {
      door,
      device: device === "gpu" ? "webgpu" : device,
      ids,
      sees: Boolean(projector),
    };
    const runIn = browser === "firefox" ? runInFirefox : runInChromium;
    await runIn(url, wanted, onResult);
  } finally {
    await server?.close();
  }
}

async function runInChromium(url, wanted, onResult) {
  const browser = await launchChromium(wanted.device === "cpu" ? { webgpu: false } : {});
  try {
    const page = await browser.newPage();
    if (process.env.INPAGE_VERBOSE) {
      page.on("console", (message) => console.error(`  page: ${message.text()}`));
    }
    const broken = new Promise((_, reject) => page.once("pageerror", reject));
    broken.catch(() => {});
    await page.exposeFunction("report", onResult);
    await page.goto(url);
    await Promise.race([page.waitForFunction(() => window.loaded), broken]);
    await page.evaluate((wanted) => window.runConformance(wanted), wanted);
  } finally {
    await browser.close();
  }
}

/** WebDriver BiDi exposes no functions to pages: the results are polled. */
async function runInFirefox(url, wanted, onResult) {
  const browser = await launchFirefox();
  try {
    const page = await browser.open(url);
    await page.evaluate((wanted) => {
      window.results = [];
      window.report = (result) => window.results.push(result);
      const run = async () => {
        while (!window.loaded) await new Promise((resolve) => setTimeout(resolve, 50));
        await window.runConformance(wanted);
      };
      window.ended = false;
      run().then(
        () => {
          window.ended = true;
        },
        (error) => {
          window.ended = String(error);
        },
      );
    }, wanted);
    for (;;) {
      const { results, ended } = await page.evaluate(() => ({
        results: window.results.splice(0),
        ended: window.ended,
      }));
      results.forEach(onResult);
      if (ended === true) return;
      if (ended) throw new Error(`${ended}\n${browser.messages.join("\n")}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } finally {
    await browser.close();
  }
}
