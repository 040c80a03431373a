//! `inpage inspect` as a command: its output, its exit status, and how many bytes it reads.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { temporaryFolder } from "../../scripts/temporary_folder.mjs";
import { splitGguf } from "../browser/containers.mjs";
import { startModelServer } from "../browser/model_server.mjs";
import { startHub } from "../delivery/hub_server.mjs";

const TALES = join(root, "www/models/tales.gguf");
const LLAMA = join(root, "tests/parity/models/llama.gguf");
const QWEN3MOE = join(root, "tests/parity/models/qwen3moe-Q8_0.gguf");
const QWEN3_FOLDER = join(root, "tests/parity/models/qwen3-hf");
const MODELS = process.env.INPAGE_MODELS ?? join(root, "../shared/models");

let folder;
before(() => {
  folder = temporaryFolder("inpage-inspect-");
});

/** Runs the command; returns its exit status and output. */
function inspect(...args) {
  return inspectWith({}, ...args);
}

/** Runs the command with further environment variables. */
function inspectWith(variables, ...args) {
  const command = [join(root, "www/bin/inpage.mjs"), "inspect", ...args];
  const options = { env: { ...process.env, ...variables } };
  return new Promise((resolve) => {
    execFile(process.execPath, command, options, (error, stdout, stderr) => {
      resolve({ status: error?.code ?? 0, stdout, stderr });
    });
  });
}

async function report(...args) {
  const { status, stdout, stderr } = await inspect("--json", ...args);
  assert.equal(stderr, "");
  return { status, ...JSON.parse(stdout) };
}

/** Writes a file with these bytes; returns its path. */
function fileOf(name, bytes) {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** All files of a folder. Files with tensors get `extraBytes` more bytes. */
function filesOf(path, extraBytes = 0) {
  const files = readdirSync(path).map((name) => {
    const extra = Buffer.alloc(name.endsWith(".safetensors") ? extraBytes : 0);
    return [name, Buffer.concat([readFileSync(join(path, name)), extra])];
  });
  return Object.fromEntries(files);
}

/** `bytes` with the first `from` after the first `after` replaced by `to`, of the same length. */
function replaced(bytes, after, from, to) {
  const copy = Buffer.from(bytes);
  copy.write(to, copy.indexOf(from, copy.indexOf(after) + after.length));
  return copy;
}

test("a local file is reported as JSON", async () => {
  const told = await report(LLAMA, "--context", "100", "--pool", "100");
  assert.equal(told.status, 0);
  assert.ok(told.runs && told.refusal === null);
  assert.equal(told.fileBytes, statSync(LLAMA).size);
  assert.deepEqual(
    told.devices.map((device) => device.maxBindingBytes),
    [2 ** 27, 2 ** 31 - 4],
  );
  const { model, tokenizer } = told;
  assert.equal(model.architecture, "llama");
  assert.equal(model.parameters, 115_008);
  assert.deepEqual(model.tensorTypes, [
    { type: "F16", tensors: 16, elements: 114_688, bytes: 229_376 },
    { type: "F32", tensors: 5, elements: 320, bytes: 1280 },
  ]);
  assert.equal(model.hyperparameters.kvHeads, 2);
  assert.equal(model.hyperparameters.rope.scaling, "none");
  assert.equal(model.memory.kvBytes, 2 * 128 * 64 * 2);
  assert.equal(model.memory.kvFormat, "f16");
  assert.equal(tokenizer.kind, "gpt2");
  assert.equal(tokenizer.preTokenizer, "llama-bpe");
  assert.deepEqual(tokenizer.bos, { id: 281, text: "<|begin_of_text|>" });
  assert.ok(tokenizer.addsBos && !tokenizer.hasChatTemplate);
});

test("a local file is reported as text", async () => {
  const { status, stdout } = await inspect(QWEN3MOE, "--kv-format", "q8_0", "--sequences", "3");
  assert.equal(status, 0);
  for (const line of [
    /^architecture +"qwen3moe"$/m,
    /^tensor types +Q8_0 +15 tensors +167\.9 k elements +174\.3 KiB$/m,
    /^layers +2 of width 64, feed-forward 32 in each of 8 experts, 2 used$/m,
    /^positions +rope of 32 elements, base 1000000$/m,
    /^tokenizer +gpt2, pre-tokenizer "qwen2", \d+ tokens, no chat template$/m,
    // Two layers of three times two pages of 64 tokens of two times two blocks of 36 bytes.
    /^ {2}KV cache +108\.0 KiB for 384 tokens as q8_0$/m,
    /^ {2}buffers to +128\.0 MiB: runs$/m,
    /^It runs \(inpage \d+\.\d+\.\d+\)\.$/m,
  ]) {
    assert.match(stdout, line);
  }
});

test("the options have the effect of load options", async () => {
  const { model } = await report(TALES, "--context", "512", "--sequences", "4");
  assert.equal(model.memory.contextTokens, 512);
  assert.equal(model.memory.kvPoolTokens, 2048);
  const least = await report(TALES, "--max-binding", "100000");
  assert.equal(least.status, 1);
  assert.equal(least.refusal.code, "unsupported_model");
  assert.match(least.refusal.message, /this device's kernels see 100000 at most/);
  assert.ok(least.model.memory.largestBuffer.bytes > 100_000);
});

test("over HTTP the header is fetched, not the model", async () => {
  const bytes = Buffer.concat([readFileSync(TALES), Buffer.alloc(8 << 20)]);
  const state = { bytes, etag: '"1"' };
  const server = await startModelServer(state);
  try {
    const told = await report(server.url);
    assert.ok(told.runs);
    assert.equal(told.fileBytes, bytes.length);
    assert.ok(state.requests.every((range) => /^bytes=\d+-\d+$/.test(range)));
    assert.ok(state.sentBytes < 1 << 20, `${state.sentBytes} bytes`);
    const local = await report(TALES);
    assert.deepEqual(told.model, local.model);
    assert.deepEqual(told.tokenizer, local.tokenizer);
  } finally {
    await server.close();
  }
});

test("the response of a server without ranges is cancelled early", {
  timeout: 60_000,
}, async () => {
  const bytes = Buffer.concat([readFileSync(TALES), Buffer.alloc(8 << 20)]);
  // A request for much more than the header would never end. Some more is sent, because sockets buffer.
  const state = { bytes, ranges: false, stallAfter: 2 << 20 };
  const server = await startModelServer(state);
  try {
    assert.ok((await report(server.url)).runs);
    assert.deepEqual(state.requests, ["bytes=0-262143"]);
  } finally {
    await server.close();
  }
});

test("a split file is reported for any of its parts, and an error names its part", async () => {
  const parts = splitGguf("llama", readFileSync(LLAMA), 3);
  const paths = Object.entries(parts).map(([name, bytes]) => fileOf(name, bytes));
  const whole = await report(LLAMA);
  assert.deepEqual(whole.container, { kind: "gguf", files: 1 });
  const told = await report(paths[0]);
  assert.deepEqual([told.status, told.runs], [0, true]);
  assert.deepEqual(told.container, { kind: "gguf", files: 3 });
  const sizes = paths.map((path) => statSync(path).size);
  assert.equal(
    told.fileBytes,
    sizes.reduce((sum, size) => sum + size),
  );
  assert.deepEqual([told.model, told.tokenizer], [whole.model, whole.tokenizer]);
  assert.deepEqual(await report(paths[2]), told);
  assert.match((await inspect(paths[1])).stdout, /^file +\d+\.\d KiB in 3 parts$/m);

  writeFileSync(paths[1], "<!doctype html>");
  const spoiled = await report(paths[0]);
  assert.equal(spoiled.status, 1);
  assert.match(spoiled.refusal.message, /"llama-00002-of-00003\.gguf": it starts with "<!do"/);
  rmSync(paths[1]);
  const lacking = await report(paths[0]);
  assert.deepEqual([lacking.status, lacking.container.files], [1, 1]);
  assert.match(lacking.refusal.message, /part 2 of 3 is missing: "llama-00002-of-00003\.gguf"$/);
  rmSync(paths[0]);
  const headless = await inspect(paths[2]);
  assert.equal(headless.status, 2);
  assert.match(headless.stderr, /there is no file llama-00001-of-00003\.gguf/);
});

test("a folder is reported as it is stored and as it is loaded", async () => {
  const told = await report(QWEN3_FOLDER);
  assert.deepEqual([told.status, told.runs], [0, true]);
  assert.deepEqual(told.container, { kind: "safetensors", files: 2 });
  assert.equal(told.fileBytes, 140_904 + 100_056);
  assert.equal(told.model.architecture, "qwen3");
  // 118,784 elements in blocks of 32 of 34 bytes; 448 of norms in f32.
  assert.equal(told.model.loadedBytes, 126_208 + 1792);
  assert.equal(told.model.memory.weightBytes, 126_208 + 1792);
  assert.equal(told.tokenizer.kind, "gpt2");
  assert.equal(told.tokenizer.tokens, 320);
  for (const name of ["config.json", "model.safetensors.index.json"]) {
    assert.deepEqual(await report(join(QWEN3_FOLDER, name)), told);
  }
  const stored = await report(QWEN3_FOLDER, "--quantize", "none");
  assert.equal(stored.model.tensorTypes[0].type, "BF16");
  assert.equal(stored.model.loadedBytes, 237_568 + 1792);
  const { stdout } = await inspect(QWEN3_FOLDER, "--quantize", "q4_0");
  for (const line of [
    /^folder +235\.3 KiB in 2 safetensors files$/m,
    /^tensors +77\.0 KiB after loading$/m,
    /^tensor types +Q4_0 +14 tensors +98\.3 k elements +54\.0 KiB$/m,
    /^ {2}weights +77\.0 KiB$/m,
    /^tokenizer +gpt2, 320 tokens, no chat template$/m,
    /^It runs /m,
  ]) {
    assert.match(stdout, line);
  }
});

test("a missing file of a folder is named", async () => {
  const copy = join(folder, "qwen3");
  const without = async (name) => {
    cpSync(QWEN3_FOLDER, copy, { recursive: true });
    rmSync(join(copy, name));
    return inspect(copy, "--json");
  };
  const shard = JSON.parse((await without("model-00002-of-00002.safetensors")).stdout);
  assert.equal(shard.refusal.code, "invalid_model_file");
  assert.match(shard.refusal.message, /no file "model-00002-of-00002\.safetensors"$/);
  const tokenizer = JSON.parse((await without("tokenizer.json")).stdout);
  assert.match(tokenizer.refusal.message, /a folder without tokenizer\.json$/);
  assert.ok(tokenizer.model !== null && tokenizer.tokenizer === null);
  const config = await without("config.json");
  assert.equal(config.status, 2);
  assert.match(config.stderr, /qwen3: there is no file config\.json/);
});

test("over HTTP only headers of parts and of shards are fetched", async () => {
  const extraBytes = 2 << 20;
  const parts = splitGguf("llama", readFileSync(LLAMA), 2);
  for (const [name, bytes] of Object.entries(parts)) {
    parts[name] = Buffer.concat([bytes, Buffer.alloc(extraBytes)]);
  }
  const state = { files: { ...parts, ...filesOf(QWEN3_FOLDER, extraBytes) } };
  const server = await startModelServer(state);
  const at = (path) => new URL(path, server.url).href;
  try {
    const split = await report(at("/dir/llama-00002-of-00002.gguf?download=true"));
    assert.deepEqual([split.runs, split.container.files], [true, 2]);
    const local = await report(QWEN3_FOLDER);
    for (const path of ["/org/name/resolve/main", "/dir/", "/dir/config.json"]) {
      const remote = await report(at(path));
      assert.deepEqual(remote.model, local.model, path);
      assert.deepEqual(remote.tokenizer, local.tokenizer);
      assert.equal(remote.fileBytes, local.fileBytes + 2 * extraBytes);
    }
    assert.ok(state.sentBytes < 8 * (300 << 10), `${state.sentBytes} bytes`);
    delete state.files["config.json"];
    const missing = await inspect(at("/dir/"));
    assert.equal(missing.status, 2);
    assert.match(missing.stderr, /\/dir\/config\.json answered 404/);
  } finally {
    await server.close();
  }
});

const skip = !existsSync(MODELS) && "skipped: the real models are missing";
test("a real folder is reported like a file of the same model", { skip }, async () => {
  for (const [name, file, kind] of [
    ["ts4m-hf", "ts4m/ts4m-Q8_0.gguf", "gpt2"],
    ["stories260K", "stories260K/stories260K-F32.gguf", "llama"],
  ]) {
    const told = await report(join(MODELS, name));
    assert.ok(told.runs, told.refusal?.message);
    assert.equal(told.fileBytes, statSync(join(MODELS, name, "model.safetensors")).size);
    const same = await report(join(MODELS, file));
    assert.deepEqual(told.model.hyperparameters, same.model.hyperparameters);
    assert.equal(told.model.parameters, same.model.parameters);
    assert.deepEqual([told.tokenizer.kind, same.tokenizer.kind], [kind, kind]);
  }
});

test("a file that a server does not send is unreadable", async () => {
  const state = { bytes: readFileSync(LLAMA), status: 404 };
  const server = await startModelServer(state);
  try {
    const missing = await inspect(server.url);
    assert.equal(missing.status, 2);
    assert.match(missing.stderr, /answered 404 Not Found/);
    assert.equal(missing.stdout, "");
    Object.assign(state, { status: undefined, ranges: false, hideLength: true });
    const sizeless = await inspect(server.url);
    assert.equal(sizeless.status, 2);
    assert.match(sizeless.stderr, /does not send the size of the file/);
  } finally {
    await server.close();
  }
  const gone = await inspect(server.url);
  assert.equal(gone.status, 2);
  assert.match(gone.stderr, /fetch failed: .+/);
});

test("a model that does not run is reported with the error of a load", async () => {
  const llama = readFileSync(LLAMA);
  const cases = [
    ["mamba.gguf", replaced(llama, "general.architecture", "llama", "mamba"), "unsupported_model"],
    ["tokenizer.gguf", replaced(llama, "tokenizer.ggml.pre", "llama-bpe", "llama-xyz")],
    // A zero byte of its length precedes the name of the tensor itself; metadata have it, too.
    [
      "lacking.gguf",
      replaced(llama, "general.architecture", "\0blk.1.ffn_up", "\0blk.1.ffn_xx"),
      "invalid_model_file",
    ],
    ["cut.gguf", llama.subarray(0, 100_000), "invalid_model_file"],
    ["header.gguf", llama.subarray(0, 1000), "invalid_model_file"],
    ["page.html", Buffer.from("<!doctype html><title>Log in</title>"), "invalid_model_file"],
  ];
  const messages = [
    /^unsupported model: architecture "mamba"; this build runs llama, /,
    /^unsupported model: .*llama-xyz/,
    /^invalid model file: tensor blk\.1\.ffn_up\.weight is missing$/,
    /^invalid model file: tensor .* past the end of the file of 100000 bytes/,
    /^invalid model file: .*the file ends|bytes of the file remain/,
    /^invalid model file: it starts with "<!do", not "GGUF"$/,
  ];
  for (const [index, [name, bytes, code = "unsupported_model"]] of cases.entries()) {
    const told = await report(fileOf(name, bytes));
    assert.equal(told.status, 1, name);
    assert.equal(told.runs, false);
    assert.equal(told.refusal.code, code);
    assert.match(told.refusal.message, messages[index]);
  }
  const unknown = await inspect(join(folder, "mamba.gguf"));
  assert.equal(unknown.status, 1);
  assert.match(unknown.stdout, /^parameters +115\.0 k$/m);
  assert.match(unknown.stdout, /^It does not run: unsupported model: architecture "mamba"/m);
});

test("wrong usage and unreadable files are distinguished from models that do not run", async () => {
  for (const [args, said] of [
    [[], /one file or URL is needed/],
    [[LLAMA, TALES], /one file or URL is needed/],
    [[LLAMA, "--context", "none"], /--context takes a whole number of at least 1, not none/],
    [[LLAMA, "--pool", "0"], /--pool takes a whole number/],
    [[LLAMA, "--kv-format", "q4_0"], /--kv-format is f32, f16, q8_0, not q4_0/],
    [[LLAMA, "--pool", "64", "--sequences", "2"], /exclude each other/],
    [[LLAMA, "--gpu"], /--gpu/],
    [[join(folder, "none.gguf")], /ENOENT/],
    [[folder], /there is no file config\.json/],
    [[QWEN3_FOLDER, "--quantize", "q9_9"], /quantize is none, .*q4_0.*, not q9_9/],
  ]) {
    const { status, stdout, stderr } = await inspect(...args);
    assert.equal(status, 2, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, said);
  }
});

test("a name on a hub is looked up there, with the token", async () => {
  const hub = await startHub({ "/owner/name/v1/tales.gguf": readFileSync(TALES) });
  try {
    hub.hub.token = "hf_secret";
    const variables = { HF_ENDPOINT: hub.hub.origin, HF_TOKEN: "hf_secret" };
    const place = "hf:owner/name/tales.gguf@v1";
    const { status, stdout, stderr } = await inspectWith(variables, place);
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^architecture +"llama"$/m);
    assert.ok(hub.cdn.requests.every(({ headers }) => headers.authorization === undefined));
    const refused = await inspectWith({ HF_ENDPOINT: hub.hub.origin, HF_TOKEN: "" }, place);
    assert.equal(refused.status, 2);
    assert.match(refused.stderr, /tales\.gguf answered 401/);
    const wrong = await inspect("hf:name");
    assert.match(wrong.stderr, /write "hf:OWNER\/NAME\/FILE\.gguf"/);
  } finally {
    await hub.close();
  }
});

test("a projector's file is described, with what it fits", async () => {
  const images = join(root, "tests/parity/images");
  const path = join(images, "gemma3.mmproj.gguf");
  const told = await report(path);
  assert.equal(told.status, 0);
  assert.ok(told.runs && told.refusal === null && told.model === null && told.tokenizer === null);
  assert.equal(told.fileBytes, statSync(path).size);
  const { kind, parameters, loadedBytes, hyperparameters } = told.projector;
  assert.equal(kind, "gemma3");
  assert.ok(parameters > 10_000 && loadedBytes < told.fileBytes);
  const { model } = await report(join(images, "gemma3.gguf"));
  assert.equal(hyperparameters.embeddingLength, model.hyperparameters.dim);
  assert.equal(hyperparameters.placeholder, "<start_of_image>");
  const { kind: shape, minTokens, maxTokens } = hyperparameters.images;
  assert.deepEqual([shape, minTokens], ["square", maxTokens]);

  const { status, stdout } = await inspect(path);
  assert.equal(status, 0);
  for (const line of [
    /^projector +"gemma3"$/m,
    /^ {2}layers +\d+ of width \d+, feed-forward \d+, \d+ heads$/m,
    /^ {2}images +stretched to \d+x\d+ pixels, patches of \d+x\d+$/m,
    new RegExp(`^ {2}tokens +${maxTokens} for an image in place of "<start_of_image>"$`, "m"),
    new RegExp(`^ {2}fits +text models of width ${model.hyperparameters.dim}$`, "m"),
    /^It runs beside a text model, as its projector \(inpage \d+\.\d+\.\d+\)\.$/m,
  ]) {
    assert.match(stdout, line);
  }
  const tiles = await inspect(join(images, "idefics3.mmproj.gguf"));
  assert.match(
    tiles.stdout,
    /^ {2}images +a longest side of \d+ pixels, cut into tiles of \d+x\d+/m,
  );
  assert.match(tiles.stdout, /^ {2}tokens +\d+ to \d+ for an image/m);
  const any = await inspect(join(images, "qwen3vl.mmproj.gguf"));
  assert.match(any.stdout, /^ {2}images +near their own size, in squares of \d+x\d+ pixels/m);
});

test("a projector that does not run is named with the reason", async () => {
  const bytes = readFileSync(join(root, "tests/parity/images/gemma3.mmproj.gguf"));
  const other = fileOf(
    "other.mmproj.gguf",
    replaced(bytes, "clip.projector_type", "gemma3", "gemma9"),
  );
  const { status, stdout } = await inspect(other);
  assert.equal(status, 1);
  assert.match(stdout, /^projector +"gemma9"$/m);
  assert.match(stdout, /^It does not run: .*projector: .*gemma9/m);
  const told = await report(other);
  assert.equal(told.projector.hyperparameters, null);
  assert.equal(told.refusal.code, "unsupported_model");
});
