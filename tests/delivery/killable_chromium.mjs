//! Chromium with a profile that outlives it, for tests that kill it. `kill` ends all its processes at once, like a crash.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { provideBrowser } from "../../scripts/setup/browser.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";

const FLAGS = [
  "--headless=new",
  "--remote-debugging-port=0",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-gpu",
  "--disable-sync",
];

/** `open()` starts the browser if it is not running, and opens the test page at `origin`. */
export function startKillable(origin) {
  const profile = temporaryFolder("inpage-profile-");
  let child;
  let browser;

  const kill = async () => {
    if (child === undefined) return;
    const exited = once(child, "exit");
    // The whole group is killed, because the browser's other processes write its files.
    process.kill(-child.pid, "SIGKILL");
    await exited;
    await browser?.close().catch(() => {});
    child = undefined;
    browser = undefined;
  };

  const start = async () => {
    const { chromium } = await import("playwright-core");
    // Chromium does not start with its sandbox as root.
    const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const args = [...FLAGS, ...sandbox, `--user-data-dir=${profile}`, "about:blank"];
    const options = { detached: true, stdio: ["ignore", "ignore", "pipe"] };
    child = spawn(await provideBrowser(), args, options);
    let output = "";
    const endpoint = await new Promise((resolve, reject) => {
      child.stderr.on("data", (text) => {
        output += text;
        const found = /DevTools listening on (ws:\S+)/.exec(output)?.[1];
        if (found) resolve(found);
      });
      child.once("exit", () => reject(new Error(`the browser does not start: ${output}`)));
    });
    browser = await chromium.connectOverCDP(endpoint);
  };

  return {
    async open() {
      if (child === undefined) await start();
      const page = await browser.contexts()[0].newPage();
      await page.goto(origin);
      await page.waitForFunction(() => window.loaded);
      return page;
    },
    kill,
    close: kill,
  };
}
