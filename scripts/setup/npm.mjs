//! Installs the npm dependencies exactly as locked, without their install scripts.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { digest, isFresh, writeStamp } from "../stamp.mjs";
import { root, run, say, Remediable } from "../process.mjs";

export async function provideNpmPackages() {
  const inputs = digest(["package.json", "package-lock.json"], process.platform, process.arch);
  if (isFresh("npm", inputs, ["node_modules/.package-lock.json"])) return;
  say("set-up: npm dependencies (npm ci --ignore-scripts)");
  const status = await run("npm", [
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
  ]);
  if (status !== 0 || !existsSync(join(root, "node_modules"))) {
    throw new Remediable(
      `npm ci failed (exit status ${status})`,
      "Is the npm registry reachable? Try it yourself:\n    npm ci --ignore-scripts --loglevel=notice",
    );
  }
  writeStamp("npm", inputs);
}
