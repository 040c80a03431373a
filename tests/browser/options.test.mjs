//! Options that do not exist or cannot be used, and places where the package cannot run. No browser is needed.

import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../scripts/process.mjs";

const load = (file) => import(pathToFileURL(join(root, "www/dist", file)).href);
const { refuseUnknownOptions } = await load("options/names.js");
const { refusePlace } = await load("options/place_check.js");
const { createEngine } = await load("engine/engine.js");

const refusal = (code, message) => (error) => {
  assert.deepEqual([error.name, error.code], ["InpageError", code], `${error}`);
  assert.match(error.message, message);
  return true;
};

describe("an option that does not exist", () => {
  for (const [options, message] of [
    [{ onProgres() {} }, /^the option onProgres does not exist: use onProgress$/],
    [{ endpoint: { max_queue: 4 } }, /endpoint\.max_queue does not exist: use endpoint\.maxQueue$/],
    [{ maxQueue: 4 }, /^maxQueue: .* write endpoint: \{ maxQueue \}$/],
    [{ profile: "vllm" }, /^profile: .* write endpoint: \{ profile \}$/],
    [{ Model: "x" }, /use model$/],
    [{ endpoint: { whenModelIsNotReady: "wait" } }, /use endpoint\.whenModelNotReady$/],
    [{ zzzzzzzzz: 1 }, /does not exist: these do: .*\bmodel, .*\bendpoint$/],
    [{ load: { contextToken: 5 } }, /the option load\.contextToken .* use load\.contextTokens$/],
    [{ model: { ulr: "x.gguf" } }, /use model\.url$/],
    [{ hub: { baseUrl: "https://a.example" } }, /use hub\.baseURL$/],
    [{ load: { memoryBudgetBytes: 5 } }, /memoryBudgetBytes: it is an option of the engine/],
    [{ upstream: { baseUrl: "https://a.example" } }, /use upstream\.baseURL$/],
    [
      { models: { a: { model: "x.gguf", alias: ["b"] } } },
      /models\["a"\]\.alias .*use models\["a"\]\.aliases$/,
    ],
    [{ models: { a: { url: "x.gguf", sha: "1" } } }, /models\["a"\]\.sha does not exist/],
    [{ models: { a: { model: { file: 1, ids: "x" } } } }, /use models\["a"\]\.model\.id$/],
    [
      { models: { a: { model: "x.gguf", endpoint: { apiKey: "k" } } } },
      /apiKey: it is an option of all models/,
    ],
    [{ models: { a: { model: "x.gguf", apiKey: "k" } } }, /write endpoint: \{ apiKey \}$/],
    [
      { models: { a: { model: "x.gguf", upstream: {} } } },
      /upstream: it is an option of all models/,
    ],
  ]) {
    test(`is refused with the right name: ${message}`, () => {
      assert.throws(() => refuseUnknownOptions(options), refusal("invalid_option", message));
    });
  }

  test("is left to a worker of the app's own, if it is a switch", () => {
    refuseUnknownOptions({ workerUrl: "/w.js", endpoint: { ofTheWorker: 1 } });
  });

  test("is none of those that exist", () => {
    refuseUnknownOptions({
      model: { url: "x.gguf", cache: false },
      ...{ load: { contextTokens: 5 }, hub: { token: "t" }, fetchOrigins: [] },
      ...{ endpoint: { maxQueue: 3, profile: "vllm" } },
      ...{ memoryBudgetBytes: 5, signal: undefined, upstream: { baseURL: "https://a.example" } },
    });
    refuseUnknownOptions({ model: new URL("https://a.example/x.gguf") });
    refuseUnknownOptions({ model: new Blob(["x"]), models: { a: "x.gguf", b: new Blob([]) } });
  });
});

/** Makes this program look like a page. */
function page(globals) {
  Object.assign(globalThis, { Worker: class {}, location: { origin: "http://192.168.0.5:8080" } });
  Object.assign(globalThis, globals);
}
const { Worker, navigator } = globalThis;
afterEach(() => {
  Object.assign(globalThis, { Worker });
  for (const name of ["location", "isSecureContext"]) delete globalThis[name];
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
});

describe("a place", () => {
  test("without workers is told which entry to use, before anything else", async () => {
    globalThis.Worker = undefined;
    await assert.rejects(
      createEngine(),
      refusal("unsupported_browser", /Node 20\.3 or newer.*import "inpage" by its name/),
    );
  });

  test("that is not secure has no WebGPU, and is told what to do", () => {
    page({ isSecureContext: false });
    assert.throws(
      () => refusePlace({ device: "webgpu" }),
      refusal(
        "no_webgpu_device",
        /192\.168\.0\.5:8080 is not a secure context: .*https.*localhost/,
      ),
    );
  });

  test("that is secure and has no WebGPU is told which browsers have it", () => {
    page({ isSecureContext: true });
    assert.throws(
      () => refusePlace({ device: "webgpu" }),
      refusal("no_webgpu_device", /Chrome or Edge 113.*hardware acceleration.*device "auto"/),
    );
    for (const device of ["auto", "cpu", undefined]) refusePlace({ device });
    Object.defineProperty(globalThis, "navigator", { value: { gpu: {} }, configurable: true });
    refusePlace({ device: "webgpu" });
  });

  test("that is not secure computes on the CPU, with one warning", () => {
    page({ isSecureContext: false });
    const { warn } = console;
    const warnings = [];
    console.warn = (text) => warnings.push(text);
    try {
      refusePlace({ device: "auto" });
      refusePlace({});
    } finally {
      console.warn = warn;
    }
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], /not a secure context.*models are not kept.*https/);
  });
});

describe("an option that cannot be used", () => {
  for (const [options, message] of [
    [{ model: "owner/name" }, /write "hf:owner\/name\/FILE\.gguf"/],
    [{ models: {} }, /models names no model/],
    [{ model: "https://a.example/x.gguf", models: { a: "x" } }, /exclude each other/],
    [{ upstream: { baseURL: "http://[" } }, /upstream\.baseURL/],
    [{ fetchOrigins: ["a.example"] }, /fetchOrigins\[0\]/],
    [{ lora: [{}] }, /lora\[0\] needs/],
  ]) {
    test(`is an InpageError: ${message}`, async () => {
      page({ isSecureContext: true });
      await assert.rejects(createEngine(options), refusal("invalid_option", message));
    });
  }
});
