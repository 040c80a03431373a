//! The demo page from a user's view, with a fake engine behind the package's own code and, if the wasm module is built, with
//! the real one: completions, loads, offline use. `demo_models` and `demo_chat` have the rest.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import { serve } from "../../scripts/server.mjs";
import {
  DEMO,
  checkLayout,
  drop,
  faultsOf,
  fakeDemo,
  loadEmbedded,
  loadUrl,
  openTab,
  ready,
  says,
  shot,
  visitor,
} from "./demo_page.mjs";
import { heldServer, startHarness, wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";

const kept = (page) => says(page, "#serving", /works offline/, 60_000);
const written = (page) => page.locator("#written").textContent();

describe("the demo with a fake engine", () => {
  let mounts;
  let harness;
  let page;
  let faults;

  before(async () => {
    mounts = await fakeDemo();
    harness = await startHarness({ mounts });
  });
  after(() => harness?.close());
  beforeEach(async () => {
    page = await harness.open(await visitor(harness, { tab: "write" }), "/demo/");
    faults = faultsOf(page);
    await ready(page);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(faults, []);
  });

  test("an example is generated, with its speed", async () => {
    await page.click("#examples button >> nth=1");
    const prompt = await page.inputValue("#prompt");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    assert.equal(await page.locator("#given").textContent(), prompt);
    assert.equal(await written(page), "é0 é1 é2 ");
    assert.match(await page.locator("#first-token").textContent(), /^\d+ ms$/);
    assert.equal(await page.inputValue("#prompt"), prompt);
  });

  test("the keyboard starts and stops a generation, and its text stays", async () => {
    await page.fill("#prompt", "count:5000:5");
    await page.press("#prompt", "Control+Enter");
    await says(page, "#written", /é9 /);
    assert.equal(await page.isEnabled("#stop"), true);
    await page.keyboard.press("Escape");
    await says(page, "#run-state", /^Stopped\.$/);
    const text = await written(page);
    assert.match(text, /^é0 .*é9 /);
    await page.waitForTimeout(100);
    assert.equal(await written(page), text, "the generation continued");
    assert.equal(await page.isEnabled("#stop"), false);
    assert.equal(await page.isVisible("#run-error"), false);
  });

  test("images of the prompt are picked, pasted and dropped where the cursor is, and sent in that order", async () => {
    assert.equal(await page.isVisible("#prompt-image-tools"), false);
    const url = `${harness.origin}/models/tales.gguf`;
    await loadUrl(page, url, { projector: `${url}?projector`, back: "write" });
    await page.waitForSelector("#prompt-image-tools:visible");
    const image = png({ width: 40, height: 30, data: Buffer.alloc(40 * 30 * 3, 90) });
    // The fake engine tells images by their sizes. Bytes after the end of a PNG file are ignored.
    const [a, b, c] = [1, 2, 3].map((count) => Buffer.concat([image, Buffer.alloc(count)]));
    const transferOf = (buffer, name) =>
      page.evaluateHandle(
        ({ bytes, name }) => {
          const given = new DataTransfer();
          given.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
          return given;
        },
        { bytes: Array.from(buffer), name },
      );
    await page.fill("#prompt", "say:images");
    const picked = { name: "a.png", mimeType: "image/png", buffer: a };
    await page.setInputFiles("#prompt-image-file", picked);
    await says(page, "#prompt-images", /19 tokens, read in \d+\.\d s/);
    assert.equal(await page.inputValue("#prompt"), "say:images<image>");

    // The others before the first one.
    await page.evaluate(() => document.querySelector("#prompt").setSelectionRange(4, 4));
    await page.evaluate(
      (clipboardData) => {
        const event = new ClipboardEvent("paste", {
          clipboardData,
          bubbles: true,
          cancelable: true,
        });
        document.querySelector("#prompt").dispatchEvent(event);
      },
      await transferOf(b, "b.png"),
    );
    assert.equal(await page.inputValue("#prompt"), "say:<image>images<image>");
    await page.dispatchEvent("body", "drop", { dataTransfer: await transferOf(c, "c.png") });
    assert.equal(await page.inputValue("#prompt"), "say:<image><image>images<image>");
    assert.equal(await page.locator("#prompt-images li").count(), 3);
    await shot(page, "prompt-images");
    const sizes = (...files) => files.map(({ length }) => `${length} bytes`).join(", ");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    assert.equal(await written(page), sizes(b, c, a));

    // An image that is removed takes its own placeholder along.
    await page.fill("#prompt", "say:<image>ima<image>ges<image>");
    await page.click("#prompt-images li:nth-child(2) button");
    assert.equal(await page.inputValue("#prompt"), "say:<image>images<image>");
    await page.click("#generate");
    await says(page, "#written", new RegExp(`^${sizes(b, a)}$`));
    await says(page, "#run-state", /^Done/);

    const code = await page.locator("#code").textContent();
    assert.ok(code.includes('prompt: "say:<image>images<image>",'), code);
    assert.ok(code.includes(`{ model: "${url}", projector: "${url}?projector" }`), code);
    assert.match(code, /files; \/\/ b\.png, a\.png\n/);
    assert.match(code, /images: \[await dataUrl\(images\[0\]\), await dataUrl\(images\[1\]\)\],/);
    const AsyncFunction = (async () => {}).constructor;
    assert.doesNotThrow(() => new AsyncFunction(code.replaceAll(/^import .*$/gm, "")));

    await page.reload();
    await ready(page);
    // The model comes back with its projector; images are not kept.
    await page.waitForSelector("#prompt-image-tools:visible");
    assert.equal(await page.inputValue("#prompt"), "say:images");
    await loadEmbedded(page, "write");
    await page.waitForSelector("#prompt-image-tools", { state: "hidden" });
    await page.dispatchEvent("body", "drop", { dataTransfer: await transferOf(a, "a.png") });
    await says(page, "#run-state", /takes no images/);
  });

  test("the code is that of the last completion", async () => {
    await page.fill("#prompt", 'A "quoted"\nprompt');
    await page.fill('input[name="seed"]', "9007199254740993");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    const code = await page.locator("#code").textContent();
    assert.match(code, /const engine = await createEngine\(\);/);
    assert.ok(code.includes('prompt: "A \\"quoted\\"\\nprompt",'), code);
    assert.match(code, /temperature: 0\.7,/);
    assert.match(code, /seed: 9007199254740993 .*engine\.completions\.create.*9007199254740993n/);
    assert.doesNotMatch(code, /images|dataUrl/);
  });

  test("the page connects to its own site only, runs no inline script, and takes models from elsewhere", async () => {
    const elsewhere = await serve({ mounts, cors: true });
    const asked = [];
    page.on("response", (response) => asked.push(response.url()));
    try {
      const refused = await page.evaluate(async (origin) => {
        const violations = [];
        document.addEventListener("securitypolicyviolation", ({ effectiveDirective }) =>
          violations.push(effectiveDirective),
        );
        const attempts = [];
        attempts.push(await fetch(`${origin}/?fetch`).then(String, ({ name }) => name));
        attempts.push(navigator.sendBeacon(`${origin}/?beacon`, "x"));
        new Image().src = `${origin}/?image`;
        try {
          new WebSocket(origin.replace("http", "ws"));
        } catch {
          attempts.push("no socket");
        }
        const script = document.createElement("script");
        script.textContent = "window.attacked = true";
        document.body.append(script);
        // Text as a program.
        setTimeout("window.attacked = true");
        document.body.insertAdjacentHTML("beforeend", '<p id="styled" style="color: red"></p>');
        while (
          !["connect-src", "img-src", "script-src", "script-src-elem", "style-src-attr"].every(
            (it) => violations.includes(it),
          )
        )
          await new Promise((resolve) => setTimeout(resolve, 20));
        return { attempts, attacked: window.attacked };
      }, elsewhere.origin);
      assert.equal(refused.attempts[0], "TypeError");
      assert.equal(refused.attacked, undefined);
      assert.deepEqual(
        asked.filter((url) => url.startsWith(elsewhere.origin)),
        [],
      );
      // These were refused on purpose.
      faults = faults.filter((text) => !/Content Security Policy/.test(text));
      await loadUrl(page, `${elsewhere.origin}/models/tales.gguf`, { back: "write" });
      await says(page, "#stored", /tales\.gguf/);
      await ready(page);
      await page.click("#generate");
      await says(page, "#run-state", /^Done/);
    } finally {
      await elsewhere.close();
    }
  });

  test("stop restores the focus, and another run works", async () => {
    await page.fill("#prompt", "count:5000:5");
    await page.click("#generate");
    await says(page, "#written", /é3 /);
    await page.click("#stop");
    await says(page, "#run-state", /^Stopped\.$/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "generate");
    await page.fill("#prompt", "count:2:1");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    assert.equal(await written(page), "é0 é1 ");
  });

  test("an error is explained, and prompt and text stay", async () => {
    await page.fill("#prompt", "error-after:9");
    await page.click("#generate");
    assert.match(await says(page, "#run-error", /./), /^Bad\./);
    assert.equal(await written(page), "é0 é1 ");
    assert.equal(await page.inputValue("#prompt"), "error-after:9");
    // A crash of the whole engine is also reported, and the next run uses a new engine.
    await page.fill("#prompt", "panic-after:9");
    await page.click("#generate");
    await says(page, "#run-error", /fake engine panicked/);
    assert.equal(await page.inputValue("#prompt"), "panic-after:9");
    await page.fill("#prompt", "count:1");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    assert.equal(await written(page), "é0 ");
  });

  test("the controls become the fields of the request", async () => {
    await page.fill("[name=temperature]", "0");
    await page.fill("[name=top_k]", "40");
    await page.fill("[name=max_tokens]", "7");
    await page.fill("[name=seed]", "9007199254740993");
    await page.fill("[name=stop]", "The end\n\\n\\n");
    await page.fill("#prompt", "count:1");
    const sent = await page.evaluate(() => {
      const { postMessage } = MessagePort.prototype;
      const body = new Promise((resolve) => {
        MessagePort.prototype.postMessage = function (message, ...rest) {
          if (message.type === "request") resolve(new TextDecoder().decode(message.request.body));
          return postMessage.call(this, message, ...rest);
        };
      });
      document.querySelector("#generate").click();
      return body;
    });
    // The seed has more digits than a JavaScript number can hold.
    assert.match(sent, /"seed":9007199254740993[,}]/);
    const { seed: _, ...fields } = JSON.parse(sent);
    assert.deepEqual(fields, {
      temperature: 0,
      top_p: 0.95,
      min_p: 0.05,
      top_k: 40,
      max_tokens: 7,
      stop: ["The end", "\n\n"],
      prompt: "count:1",
      model: "default",
      stream: true,
      stream_options: { include_usage: true, continuous_usage_stats: true },
    });
    await page.reload();
    assert.equal(await page.inputValue("[name=seed]"), "9007199254740993");
    assert.equal(await page.inputValue("#prompt"), "count:1");
  });

  test("a dropped file is loaded and answers", async () => {
    await drop(page, "mine.gguf", Buffer.from("abc"));
    await says(page, "#model-name", /^mine\.gguf$/);
    await ready(page);
    assert.equal(await page.isVisible("#drop"), false);
    assert.equal(await page.isChecked("input[value=file]"), true);
    await page.fill("#prompt", "count:2");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    const models = await page.evaluate(async () => (await fetch("/v1/models")).json());
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ["mine"],
    );
  });

  test("a URL without a file is reported, and the old model stays in use", async () => {
    await loadUrl(page, `${harness.origin}/absent.gguf`, { back: "write" });
    const words = await says(page, "#notice-model", /./);
    assert.match(
      words,
      /absent\.gguf answered 404 Not Found\. Is the address correct\? Meanwhile, tales keeps answering/,
    );
    await page.fill("#prompt", "count:1");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
  });

  test("a tab opens although a notice moves it while its button is pressed", async (t) => {
    const { origin, asked } = await heldServer(t);
    await loadUrl(page, `${origin}/absent.gguf`);
    const [, response] = await asked;
    const button = page.locator("#write-tab");
    await button.hover();
    const { y, height } = await button.boundingBox();
    await page.mouse.down();
    response.writeHead(404, { "access-control-allow-origin": "*" }).end();
    await says(page, "#notice-model", /absent\.gguf/);
    assert.ok((await button.boundingBox()).y > y + height, "the notice did not move the tab");
    await page.mouse.up();
    assert.equal(await page.isVisible("#prompt"), true);
  });

  test("a load can be cancelled, and replaced by another", async () => {
    // A server that never answers.
    const silent = createServer(() => {}).listen(0, "127.0.0.1");
    await once(silent, "listening");
    await loadUrl(page, `http://127.0.0.1:${silent.address().port}/slow.gguf`);
    await says(page, "#model-state", /^is loading$/);
    await page.click("#cancel-load");
    await ready(page);
    assert.equal(await page.locator("#model-name").textContent(), "tales");
    await page.click("#load");
    await says(page, "#model-name", /^slow\.gguf$/);
    await loadEmbedded(page);
    await says(page, "#model-name", /^tales$/);
    await ready(page);
    silent.closeAllConnections();
    silent.close();
  });

  test("stored models are listed, and deleted one by one or all at once", async () => {
    await says(page, "#stored", /^tales\.gguf 100 kB/);
    await loadUrl(page, `${harness.origin}/models/tales.gguf?copy`);
    await says(page, "#model-name", /\S/);
    await says(page, "#stored", /tales\.gguf.*tales\.gguf/);
    await page.click("#stored li:first-child button");
    await says(page, "#stored", /^tales\.gguf 100 kBDelete$/);
    assert.match(await page.locator("#stored-state").textContent(), /^\d+ kB of /);
    await page.click("#stored-clear");
    await says(page, "#stored-state", /^No model is stored\.$/);
    assert.equal(await page.isVisible("#stored-clear"), false);
  });

  test("the service worker answers plain fetch", async () => {
    await says(page, "#serving", /This tab answers/);
    const models = await page.evaluate(async () => (await fetch("/v1/models")).json());
    assert.equal(models.data[0].id, "tales");
  });

  test("a second visit needs no network", async () => {
    // A separate server, which can be stopped.
    const server = await serve({ mounts });
    const guest = await (await visitor(harness, { tab: "write" })).newPage();
    try {
      await guest.goto(`${server.origin}/demo/`);
      await ready(guest);
      await kept(guest);
    } finally {
      await server.close();
    }
    await guest.context().setOffline(true);
    await guest.reload();
    await ready(guest);
    await guest.fill("#prompt", "count:3");
    await guest.click("#generate");
    await says(guest, "#run-state", /^Done/);
    assert.equal(await written(guest), "é0 é1 é2 ");
    await kept(guest);
    await guest.context().close();
  });

  test("nothing overflows, every control has a name and targets are large on a phone, in both color schemes", async () => {
    await page.evaluate(() => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
    await page.fill("#prompt", "count:60:1");
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    await openTab(page, "models");
    await page.check("input[value=url]");
    for (const tab of ["write", "search", "models"]) {
      await openTab(page, tab);
      for (const [width, colorScheme] of [
        [320, "light"],
        [390, "dark"],
        [1200, "light"],
        [1200, "dark"],
      ]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 844 });
        await shot(page, `${tab}-${width}-${colorScheme}`);
        await checkLayout(page, `${tab}, ${width} px, ${colorScheme}`);
      }
    }
  });
});

// The embedded model; if it is missing, another real one replaces it.
const MODELS = process.env.INPAGE_MODELS ?? resolve(root, "../shared/models");
const STORIES = join(MODELS, "stories260K/stories260K-Q8_0.gguf");
const TALES = join(root, "www/models/tales.gguf");
const model = [TALES, STORIES].find((path) => existsSync(path));
const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !model && `skipped: neither ${TALES} nor ${STORIES} exists`;

describe("the demo with the real engine", { skip }, () => {
  const mounts = { ...DEMO, "/dist/": join(root, "www/dist/"), "/models/tales.gguf": model };
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ mounts });
    page = await harness.open(await visitor(harness, { tab: "write" }), "/demo/");
    await ready(page);
  });
  after(() => harness?.close());

  const generate = async (maxTokens) => {
    await page.evaluate(() => {
      document.querySelector("#sampling-card").open = true;
    });
    await page.fill("[name=temperature]", "0");
    await page.fill("[name=max_tokens]", String(maxTokens));
    await page.click("#examples button >> nth=0");
    await page.click("#generate");
  };
  let text;

  test("an example at temperature 0 gives text and tokens/s", async () => {
    await generate(24);
    await says(page, "#run-state", /^Done/, 120_000);
    text = await written(page);
    assert.match(text, /[a-z]{3}/);
    for (const id of ["prefill", "decode"]) {
      assert.match(await page.locator(`#${id}`).textContent(), /^[\d.]+ tokens\/s$/);
    }
    assert.match(await page.locator("#tokens").textContent(), /^\d+ \+ \d+$/);
  });

  test("the device is named, and where the CPU computes, why and what to do about it", async () => {
    const device = await page.locator("#device").textContent();
    assert.match(device, /^Device.+Kernels.+Model/);
    const noticed = await page.isVisible("#notice-cpu");
    assert.equal(noticed, device.includes("CPU"));
    if (noticed) {
      // It has been measured by now, and tells neither the reason in the words of the graphics library nor that it is slow.
      await says(
        page,
        "#cpu-speed",
        /^The model runs on the CPU and writes [\d.]+ tokens\/s, faster/,
      );
      const notice = await says(page, "#notice-cpu", /hardware acceleration/);
      assert.doesNotMatch(notice, /slow|wgpu|adapter/i);
    }
    await shot(page, "real");
  });

  test("a browser without WebGPU is told which ones have it, and gets its text", async () => {
    const context = await visitor(harness, { tab: "write" });
    await context.addInitScript(
      'Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined })',
    );
    const other = await harness.open(context, "/demo/");
    await ready(other);
    const browsers = /no WebGPU.*Chrome or Edge 113.*Safari 26.*Firefox 141/s;
    await says(other, "#notice-cpu", browsers);
    await other.click("#generate");
    await says(other, "#run-state", /^Done/, 120_000);
    await shot(other, "no-webgpu");
    await context.close();
  });

  test("stop ends a longer generation", async () => {
    // In the page: the model may be done before a click from outside arrives.
    await page.evaluate(() => {
      const stop = document.querySelector("#stop");
      const written = document.querySelector("#written");
      const observer = new MutationObserver(() => {
        if (stop.disabled || written.textContent === "") return;
        observer.disconnect();
        stop.click();
      });
      observer.observe(written, { childList: true, characterData: true, subtree: true });
    });
    await generate(400);
    await says(page, "#run-state", /^Stopped/);
    assert.equal(await page.isVisible("#run-error"), false);
  });

  test("a dropped model answers; a file that is not a model is refused, and the old model stays", async () => {
    await drop(page, "dropped.gguf", readFileSync(model));
    await says(page, "#model-name", /^dropped\.gguf$/);
    await ready(page);
    await generate(24);
    await says(page, "#run-state", /^Done/, 120_000);
    assert.equal(await written(page), text);
    await drop(page, "notes.txt", Buffer.from("no model at all"));
    await says(page, "#notice-model", /invalid model file.*dropped\.gguf keeps answering/i);
    assert.equal(await written(page), text);
  });

  // This test must be the last one, because it stops the server.
  test("a second visit needs no network and generates the same text", async () => {
    // The page cannot open the dropped file again.
    await loadEmbedded(page, "write");
    await says(page, "#model-name", /^tales$/);
    await ready(page);
    await kept(page);
    await harness.stopServer();
    await page.context().setOffline(true);
    await page.reload();
    await ready(page);
    await generate(24);
    await says(page, "#run-state", /^Done/, 120_000);
    assert.equal(await written(page), text);
  });
});
