//! `inpage create` as a command: what it refuses, and what it writes. `templates.test.mjs` and `vite.test.mjs` build and run the apps.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { askForTemplate, create as runCreate } from "../../www/bin/create.mjs";

const folder = temporaryFolder("inpage-create-");
const create = (...args) =>
  spawnSync(process.execPath, [join(root, "www/bin/inpage.mjs"), "create", ...args], {
    cwd: folder,
    encoding: "utf8",
    // npm asks no registry before it fails.
    env: { ...process.env, npm_config_offline: "true" },
  });

test("the files of an app are written, with this version of the package", () => {
  const { status, stdout } = create("app", "--no-install");
  assert.equal(status, 0);
  assert.match(stdout, /cd app\n {2}npm install\n {2}npm run dev/);
  const files = readdirSync(join(folder, "app")).sort();
  const wanted = [".gitignore", "index.html", "package.json", "src", "tsconfig.json"];
  assert.deepEqual(files, [...wanted, "vite.config.js"]);
  const read = (path) => JSON.parse(readFileSync(path, "utf8"));
  const { dependencies, scripts } = read(join(folder, "app/package.json"));
  const { version } = read(join(root, "package.json"));
  assert.deepEqual(dependencies, { inpage: `^${version}` });
  assert.equal(scripts.dev, "vite");
});

test("each template is an app, and others are refused", () => {
  for (const template of ["completion", "chat", "search", "images"]) {
    const { status } = create(template, "--template", template, "--no-install");
    assert.equal(status, 0, template);
    const files = readdirSync(join(folder, template)).sort();
    const wanted = [".gitignore", "index.html", "package.json", "src", "tsconfig.json"];
    assert.deepEqual(files, [...wanted, "vite.config.js"]);
    assert.deepEqual(readdirSync(join(folder, template, "src")), ["main.ts"]);
  }
  const text = (template) => readFileSync(join(folder, template, "src/main.ts"), "utf8");
  assert.match(text("chat"), /engine\.chat/);
  assert.match(text("search"), /engine\.embeddings/);
  assert.match(text("images"), /image_url/);
  const refused = create("other", "--template", "poem", "--no-install");
  assert.equal(refused.status, 2);
  assert.match(refused.stderr, /--template poem is none of completion, chat, search, images/);
});

/** A terminal that types one of `keys` at each question; those that are left, and what it shows. */
function terminalThatTypes(keys, isTTY = true) {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()].map((it) =>
    Object.assign(it, { isTTY }),
  );
  const terminal = { stdin, stdout, rest: [...keys], shown: "" };
  stdout.on("data", (text) => {
    terminal.shown += text;
    if (`${text}`.includes("> ") && terminal.rest.length > 0) stdin.write(terminal.rest.shift());
  });
  return terminal;
}

/** What a terminal shows that types an answer to each question, and the chosen template. */
async function choose(answers, isTTY = true) {
  const terminal = terminalThatTypes(
    answers.map((it) => `${it}\r`),
    isTTY,
  );
  const template = await askForTemplate(terminal);
  return { template, shown: terminal.shown, rest: terminal.rest };
}

test("a terminal is asked for the template until it names one", async () => {
  for (const [answers, template] of [
    [["2"], "chat"],
    [["images"], "images"],
    [[""], "completion"],
    [["5", "0", "poem", "3"], "search"],
  ]) {
    const chosen = await choose(answers);
    assert.equal(chosen.template, template);
    assert.deepEqual(chosen.rest, []);
    const questions = chosen.shown.split("What does the page do?").length - 1;
    assert.equal(questions, answers.length, chosen.shown);
    assert.match(chosen.shown, / 1 completion\r?\n {2}2 chat\r?\n {2}3 search\r?\n {2}4 images/);
  }
  assert.deepEqual(await choose([], false), { template: "completion", shown: "", rest: [] });
});

test("Ctrl+C and Ctrl+D at the question end the command", async () => {
  const app = join(folder, "given-up");
  for (const key of ["\x03", "\x04"]) {
    assert.equal(await runCreate([app], terminalThatTypes([key])), 1);
    assert.ok(!existsSync(app));
  }
});

test("a model of the catalog takes the place of the template's", () => {
  const scripts = {
    chat: ["qwen3-0.6b", "smollm2-135m-instruct"],
    search: ["all-minilm-l6-v2", "bge-small-en-v1.5"],
    images: ["smolvlm-256m-instruct", "qwen3-vl-2b-instruct"],
  };
  for (const [template, [usual, model]] of Object.entries(scripts)) {
    const app = `${template}-model`;
    const { status } = create(app, "--template", template, "--model", model, "--no-install");
    assert.equal(status, 0, template);
    const text = readFileSync(join(folder, app, "src/main.ts"), "utf8");
    assert.equal(text.split(`"${model}"`).length, 2, template);
    assert.ok(!text.includes(usual), template);
  }
  for (const [args, message] of [
    [
      ["--template", "chat", "--model", "smollm2-135m-instrukt"],
      /similar names: smollm2-135m-instruct/,
    ],
    [["--template", "search", "--model", "qwen3-0.6b"], /no "qwen3-0\.6b" for embedding/],
    [["--model", "qwen3-0.6b"], /--model needs --template chat, search or images/],
  ]) {
    const { status, stderr } = create("refused", ...args, "--no-install");
    assert.equal(status, 2);
    assert.match(stderr, message);
    assert.equal(existsSync(join(folder, "refused")), false);
  }
});

test("a folder with files is left alone, and an empty one is used", () => {
  mkdirSync(join(folder, "full"));
  writeFileSync(join(folder, "full/note.txt"), "mine");
  const refused = create("full", "--no-install");
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /full is not empty/);
  assert.deepEqual(readdirSync(join(folder, "full")), ["note.txt"]);
  mkdirSync(join(folder, "empty"));
  assert.equal(create("empty", "--no-install").status, 0);
});

test("a failed installation and wrong usage are told", () => {
  const failed = create("failing", "--package", "file:./none.tgz");
  assert.equal(failed.status, 1);
  assert.match(failed.stderr, /npm install failed/);
  for (const args of [[], ["a", "b"], ["a", "--none"]]) {
    assert.equal(create(...args).status, 2);
  }
  assert.equal(existsSync(join(folder, "a")), false);
  assert.match(create("--help").stdout, /^Usage: inpage create FOLDER/);
});
