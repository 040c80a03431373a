//! `inpage create`: writes a small app with Vite into a new folder and installs it. The app is the repository's examples/vite.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

export const USAGE = `Usage: inpage create FOLDER [options]

Writes an app into a new folder and installs it with npm: a page in TypeScript, built with Vite, that loads the small
model in the package, streams completions, and answers fetch("/v1/completions"). Start it with: npm run dev

  --package SPEC       what npm installs as inpage: a version, or the path of an archive (default: this version)
  --no-install         only write the files
  -h, --help           this text

Exit status: 0 the app is there, 1 it could not be written or installed, 2 wrong usage.
`;

const FAILED = 1;
const WRONG_USAGE = 2;
const EXAMPLE = fileURLToPath(new URL("../../examples/vite", import.meta.url));
const FILES = ["index.html", "src", "tsconfig.json", "vite.config.js"];
const OPTIONS = {
  package: { type: "string" },
  "no-install": { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
};

/** Runs the command; returns the exit status. */
export async function create(args) {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    if (!parsed.values.help && parsed.positionals.length !== 1) {
      throw new Error("one folder is needed");
    }
  } catch (error) {
    process.stderr.write(`inpage create: ${error.message}\n\n${USAGE}`);
    return WRONG_USAGE;
  }
  const { values, positionals } = parsed;
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const folder = resolve(positionals[0]);
  try {
    write(folder, values.package);
  } catch (error) {
    process.stderr.write(`inpage create: ${error.message}\n`);
    return FAILED;
  }
  if (!values["no-install"] && !install(folder)) {
    process.stderr.write(`inpage create: npm install failed in ${folder}\n`);
    return FAILED;
  }
  const steps = values["no-install"] ? "npm install\n  npm run dev" : "npm run dev";
  process.stdout.write(
    `The app is in ${folder}. Start it:\n\n  cd ${positionals[0]}\n  ${steps}\n`,
  );
  return 0;
}

/** Writes the app's files; `spec` is where npm finds the package. */
function write(folder, spec) {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new Error(`${folder} is not empty: give the name of a new folder`);
  }
  mkdirSync(folder, { recursive: true });
  for (const file of FILES) cpSync(join(EXAMPLE, file), join(folder, file), { recursive: true });
  const description = JSON.parse(readFileSync(join(EXAMPLE, "package.json"), "utf8"));
  description.name = nameOf(folder);
  description.dependencies.inpage = specOf(spec);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(description, null, 2)}\n`);
  writeFileSync(join(folder, ".gitignore"), "dist\nnode_modules\n");
}

/** A name that npm takes. */
function nameOf(folder) {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return name || "app";
}

function specOf(spec) {
  if (spec === undefined) {
    const path = new URL("../../package.json", import.meta.url);
    return `^${JSON.parse(readFileSync(path, "utf8")).version}`;
  }
  // npm would look for it from the new folder.
  return existsSync(spec) ? `file:${resolve(spec)}` : spec;
}

function install(cwd) {
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error"];
  const options = { cwd, stdio: ["ignore", 2, 2], shell: process.platform === "win32" };
  return spawnSync("npm", args, options).status === 0;
}
