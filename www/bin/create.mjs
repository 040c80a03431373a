//! `inpage create`: writes a small app with Vite into a new folder and installs it. The apps are the repository's examples/vite.

import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createInterface } from "node:readline/promises";
import { parseArgs } from "node:util";
import { catalog } from "../dist/catalog/models.js";
import { nearestNames } from "../dist/options/names.js";

export const USAGE = `Usage: inpage create FOLDER [options]

Writes an app into a new folder and installs it with npm: a page in TypeScript, built with Vite. Start it with: npm run dev

  --template NAME      what the page does; asked for in a terminal, else completion
                         completion  streams texts of the small model in the package, and answers fetch("/v1/completions")
                         chat        a chat with a model of the catalog
                         search      a search by meaning in texts of the page
                         images      questions about an image
  --model NAME         a model of the catalog (inpage models) for the chat, the search or the images
  --package SPEC       what npm installs as inpage: a version, or the path of an archive (default: this version)
  --no-install         only write the files
  -h, --help           this text

Exit status: 0 the app is there, 1 it could not be written or installed, 2 wrong usage.
`;

const FAILED = 1;
const WRONG_USAGE = 2;
const EXAMPLE = fileURLToPath(new URL("../../examples/vite", import.meta.url));
/** The files of every app, and those that a template has in its own folder. */
const FILES = ["tsconfig.json", "vite.config.js"];
const OWN_FILES = ["index.html", "src"];
/** The folder of each template in the example, and the task of its model, whose name its script has. The first has the small model. */
const TEMPLATES = {
  completion: { from: "." },
  chat: { from: "templates/chat", task: "chat", model: "qwen3-0.6b" },
  search: { from: "templates/search", task: "embedding", model: "all-minilm-l6-v2" },
  images: { from: "templates/images", task: "vision", model: "smolvlm-256m-instruct" },
};
const OPTIONS = {
  template: { type: "string" },
  model: { type: "string" },
  package: { type: "string" },
  "no-install": { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
};

/** Runs the command; returns the exit status. A question is asked on `terminal`. */
export async function create(args, terminal = process) {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
    if (!parsed.values.help && parsed.positionals.length !== 1) {
      throw new Error("one folder is needed");
    }
    checkTemplate(parsed.values);
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
    write(folder, values.template ?? (await askForTemplate(terminal)), values);
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

/** @throws Error for a template that does not exist, or a model that the template cannot use */
function checkTemplate({ template, model }) {
  if (template !== undefined && !Object.hasOwn(TEMPLATES, template)) {
    throw new Error(`--template ${template} is none of ${Object.keys(TEMPLATES).join(", ")}`);
  }
  if (model === undefined) return;
  const { task } = TEMPLATES[template] ?? {};
  if (task === undefined) {
    throw new Error("--model needs --template chat, search or images");
  }
  const names = catalog.filter(({ tasks }) => tasks.includes(task)).map(({ name }) => name);
  if (names.includes(model)) return;
  const similar = nearestNames(model, names);
  const meant = similar.length > 0 ? ` (similar names: ${similar.join(", ")})` : "";
  throw new Error(`--model: the catalog has no "${model}" for ${task}${meant}`);
}

/** The template that somebody chooses in a terminal; elsewhere the first one. @throws AbortError for Ctrl+C and Ctrl+D */
export async function askForTemplate({ stdin: input, stdout: output }) {
  const names = Object.keys(TEMPLATES);
  if (!input.isTTY || !output.isTTY) return names[0];
  const terminal = createInterface({ input, output });
  try {
    for (;;) {
      const list = names.map((name, i) => `  ${i + 1} ${name}\n`).join("");
      const answer = (await terminal.question(`What does the page do?\n${list}> `)).trim();
      const chosen = names[Number(answer || 1) - 1] ?? names.find((name) => name === answer);
      if (chosen !== undefined) return chosen;
    }
  } finally {
    terminal.close();
  }
}

/** Writes the app's files. `model` replaces that of the template, and `spec` is where npm finds the package. */
function write(folder, template, { model, package: spec }) {
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new Error(`${folder} is not empty: give the name of a new folder`);
  }
  mkdirSync(folder, { recursive: true });
  const copy = (from, file) => cpSync(join(from, file), join(folder, file), { recursive: true });
  for (const file of FILES) copy(EXAMPLE, file);
  const { from, model: usual } = TEMPLATES[template];
  for (const file of OWN_FILES) copy(join(EXAMPLE, from), file);
  if (model !== undefined) {
    const script = join(folder, "src/main.ts");
    const text = readFileSync(script, "utf8");
    writeFileSync(script, text.replace(JSON.stringify(usual), JSON.stringify(model)));
  }
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
