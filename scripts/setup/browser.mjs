//! The browser for tests and the command line: the one that CHROMIUM names, an installed one, or Debian's package. No
//! browser is downloaded from elsewhere.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { say, which, Remediable } from "../process.mjs";
import { installPackages, isDebian } from "./apt.mjs";

const NAMES = [
  "google-chrome-stable",
  "google-chrome",
  "chromium",
  "chromium-browser",
  "microsoft-edge-stable",
  "microsoft-edge",
];

function installedFiles() {
  if (process.platform === "darwin") {
    const apps = ["Google Chrome", "Chromium", "Microsoft Edge"];
    return ["/Applications", join(process.env.HOME ?? "", "Applications")].flatMap((folder) =>
      apps.map((app) => join(folder, `${app}.app`, "Contents", "MacOS", app)),
    );
  }
  if (process.platform === "win32") {
    const roots = [
      process.env.PROGRAMFILES,
      process.env["PROGRAMFILES(X86)"],
      process.env.LOCALAPPDATA,
    ];
    return roots
      .filter(Boolean)
      .flatMap((folder) => [
        join(folder, "Google", "Chrome", "Application", "chrome.exe"),
        join(folder, "Chromium", "Application", "chrome.exe"),
        join(folder, "Microsoft", "Edge", "Application", "msedge.exe"),
      ]);
  }
  return NAMES.map((name) => which(name)).filter(Boolean);
}

/** The path of an installed Chromium-family browser, or undefined. */
export function findBrowser() {
  const named = process.env.CHROMIUM;
  if (named) {
    const file = existsSync(named) ? named : which(named);
    if (!file)
      throw new Remediable(
        `CHROMIUM names ${named}, which does not exist`,
        "Unset CHROMIUM or correct it.",
      );
    return file;
  }
  return installedFiles().find((file) => existsSync(file));
}

/** The path of a Chromium-family browser; installs Debian's if there is none. */
export async function provideBrowser() {
  const found = findBrowser();
  if (found) return found;
  if (isDebian()) {
    say("set-up: a browser");
    await installPackages(["chromium"], "a browser with WebGPU (chromium)");
    const installed = findBrowser();
    if (installed) return installed;
  }
  throw new Remediable(
    "no Chrome, Chromium or Edge found",
    "Install Chrome (https://www.google.com/chrome) or set CHROMIUM to the browser's executable.",
  );
}

const SHELL_INSTALL_LIMIT_MS = 3 * 60_000;

/**
 * The path of Chromium's headless shell, which Debian packages apart from the browser, or undefined. It has the engine of the
 * browser without its interface, and opens a page in less than half of the processor time. With CHROMIUM set, all tests use
 * that browser.
 */
export async function provideHeadlessShell() {
  if (process.env.CHROMIUM) return undefined;
  const name = "chromium-headless-shell";
  if (!which(name) && isDebian()) {
    try {
      await installPackages([name], "a headless shell", SHELL_INSTALL_LIMIT_MS);
    } catch (error) {
      if (!(error instanceof Remediable)) throw error;
    }
  }
  return which(name);
}
