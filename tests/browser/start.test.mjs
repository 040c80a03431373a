//! `npm start -- --prompt` with images: the arguments of the command line, and what it writes with small vision models of
//! random weights on the CPU device. Nothing is built.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { before, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";

const skip = !wasmIsBuilt && "skipped: the wasm module is not built";
const TINY = join(process.env.INPAGE_MODELS ?? resolve(root, "../shared/models"), "tiny");
const skipTiny =
  skip || (!existsSync(join(TINY, "mmproj-smolvlm-F16.gguf")) && `skipped: no model in ${TINY}`);

const PARITY = join(root, "tests/parity/images");
const IDEFICS3 = [
  ...["--model", join(PARITY, "idefics3.gguf")],
  ...["--projector", join(PARITY, "idefics3.mmproj.gguf")],
];

/** Runs `scripts/start.mjs` in `cwd`; resolves with its exit status and output. */
function start(args, cwd) {
  return new Promise((resolve, reject) => {
    const script = join(root, "scripts/start.mjs");
    // npm sets it to the user's folder.
    const env = { ...process.env, INIT_CWD: cwd };
    const child = spawn(process.execPath, [script, "--no-build", ...args], { cwd: root, env });
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        output[name] += text;
      });
    }
    child.on("error", reject);
    child.on("close", (status) => resolve({ status, ...output }));
  });
}

describe("npm start with images", { skip }, () => {
  let folder;
  before(() => {
    folder = temporaryFolder("inpage-start-");
    const image = (side, seed) => {
      const bytes = Array.from({ length: side * side * 3 }, (_, i) => (i * seed) % 256);
      return png({ width: side, height: side, data: Buffer.from(bytes) });
    };
    writeFileSync(join(folder, "a.png"), image(64, 7));
    writeFileSync(join(folder, "B.PNG"), image(64, 31));
    writeFileSync(join(folder, "image"), image(8, 1));
  });

  async function complete(...args) {
    const fixed = ["--device", "cpu", "--max-tokens", "6", "--temperature", "0", "--json"];
    const { status, stdout, stderr } = await start([...fixed, ...args], folder);
    assert.equal(status, 0, stderr);
    const { text, usage } = JSON.parse(stdout);
    assert.equal(usage.completion_tokens, 6);
    return { text, tokens: usage.prompt_tokens };
  }

  test("each image takes its place, or the beginning of a prompt without places", async () => {
    const prompt = (text, ...images) =>
      complete(...IDEFICS3, "--prompt", text, ...images.flatMap((name) => ["--image", name]));
    const first = await prompt("What is this?", "a.png");
    assert.deepEqual(await prompt("<image>What is this?", "a.png"), first);
    const other = await prompt("What is this?", "B.PNG");
    assert.equal(other.tokens, first.tokens);
    assert.notEqual(other.text, first.text);
    const both = await prompt("<image>What is <image>this?", "B.PNG", "a.png");
    const swapped = await prompt("<image>What is <image>this?", "a.png", "B.PNG");
    assert.equal(both.tokens, swapped.tokens);
    assert.notEqual(both.text, swapped.text);
    const without = await prompt("What is this?");
    assert.ok(both.tokens - first.tokens >= first.tokens - without.tokens);
    assert.ok(first.tokens - without.tokens >= 16);
  });

  test("the token after an image is that of the reference", { skip: skipTiny }, async () => {
    const [width, height] = [128, 128];
    const data = readFileSync(join(TINY, "smolvlm/img_128x128_rgb8.bin"));
    writeFileSync(join(folder, "reference.png"), png({ width, height, data }));
    const { text, tokens } = await complete(
      ...["--model", join(TINY, "smolvlm-F16.gguf")],
      ...["--projector", join(TINY, "mmproj-smolvlm-F16.gguf")],
      ...["--image", "reference.png", "--prompt"],
      "<|im_start|>User:<image>What is in this picture?<end_of_utterance>\nAssistant:",
    );
    // Token 2561, which transformers chooses.
    assert.match(text, /^ Will/);
    assert.equal(tokens, 36);
  });

  test("wrong arguments and refused requests are explained", async () => {
    const a = ["--image", "a.png"];
    const [model, projector] = [IDEFICS3.slice(0, 2), IDEFICS3.slice(2)];
    const prompt = ["--prompt", "One"];
    const cases = [
      [[...IDEFICS3, ...a], 2, /--model needs --prompt/],
      [a, 2, /--image needs --prompt/],
      [[...prompt, ...a], 1, /--image needs a model that takes images/],
      [[...prompt, ...projector], 1, /--projector needs a model/],
      [[...prompt, ...model, "--projector", "none.gguf"], 1, /no projector file none\.gguf/],
      [[...prompt, ...IDEFICS3, "--image", "none.png"], 1, /no image none\.png/],
      [[...prompt, ...IDEFICS3, "--image", "image"], 2, /does not say which image/],
      [["--prompt", "<image> <image>", ...IDEFICS3, ...a], 1, /400 .*images.*2 placeholders/],
    ];
    for (const [args, expected, message] of cases) {
      const { status, stdout, stderr } = await start([...args, "--device", "cpu"], folder);
      assert.match(stderr, message, args.join(" "));
      assert.equal(status, expected, args.join(" "));
      assert.equal(stdout.trim(), "");
    }
  });
});
