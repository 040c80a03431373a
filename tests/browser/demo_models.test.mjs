//! The models of the demo from a user's view, with a fake engine: which one comes back, pause and resume, notices, the tour.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import {
  canSend,
  done,
  drop,
  faultsOf,
  fakeDemo,
  loadUrl,
  openTab,
  ready,
  says,
  send,
  shot,
  texts,
  visitor,
} from "./demo_page.mjs";
import { startHarness } from "./harness.mjs";

const MODEL = Buffer.alloc(10_000_000, 9);
const HALF_BYTES = 6_000_000;
/** A part of this size is stored as a whole. */
const CHUNK_BYTES = 4 << 20;

/** A server of a model that holds the second part of it back until `release`. */
async function slowServer() {
  const ranges = [];
  const held = new Set();
  let isReleased = false;
  const server = createServer((request, response) => {
    const start = Number(/bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    ranges.push(start);
    const headers = {
      "Access-Control-Allow-Origin": "*",
      "Access-Control-Allow-Headers": "*",
      "Access-Control-Expose-Headers": "*",
      "Accept-Ranges": "bytes",
      "Content-Length": MODEL.length - start,
      "Content-Type": "application/octet-stream",
      ETag: '"one"',
    };
    if (request.method === "OPTIONS") return response.writeHead(204, headers).end();
    if (start > 0) headers["Content-Range"] = `bytes ${start}-${MODEL.length - 1}/${MODEL.length}`;
    response.writeHead(start > 0 ? 206 : 200, headers);
    if (request.method === "HEAD" || isReleased) return response.end(MODEL.subarray(start));
    if (start < HALF_BYTES) response.write(MODEL.subarray(start, HALF_BYTES));
    held.add(response);
    response.on("close", () => held.delete(response));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/slow.gguf`,
    ranges,
    release() {
      isReleased = true;
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

describe("the models of the demo", () => {
  let harness;
  let page;
  let faults;

  const open = async (memory) => {
    page = await harness.open(await visitor(harness, memory), "/demo/");
    faults = faultsOf(page);
  };
  before(async () => {
    harness = await startHarness({ mounts: await fakeDemo() });
  });
  after(() => harness?.close());
  beforeEach(() => {
    faults = [];
    page = undefined;
  });
  afterEach(async () => {
    await page?.context().close();
    assert.deepEqual(faults, []);
  });

  test("the model by URL, the tab and the conversation come back", async () => {
    await open({ "simple-template": "tales.gguf" });
    await ready(page);
    const url = `${harness.origin}/models/tales.gguf`;
    await loadUrl(page, url, { back: "chat" });
    await canSend(page);
    await send(page, "count:2");
    await done(page);
    await page.reload();
    await canSend(page);
    assert.equal(await page.textContent("#model-name"), "tales.gguf");
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    await send(page, "count:1");
    await done(page);
    assert.equal((await texts(page)).length, 4);
    const code = await page.textContent("#code");
    assert.ok(code.includes(`createEngine({ model: "${url}" })`), code);
    assert.match(code, /openai\.chat\.completions\.create\(/);
    assert.match(code, /\{ role: "user", content: "count:1" \},/);
    assert.match(code, /choices\[0\]\?\.delta\.content/);
  });

  test("the example code is that of the tab", async () => {
    await open();
    await ready(page);
    const code = () => page.textContent("#code");
    assert.match(await code(), /openai\.chat\.completions\.create\(\{\n {2}model: "default",\n/);
    await openTab(page, "write");
    assert.match(await code(), /openai\.completions\.create\(/);
    await openTab(page, "search");
    assert.match(await code(), /openai\.embeddings\.create\(/);
    const AsyncFunction = (async () => {}).constructor;
    for (const tab of ["chat", "write", "search"]) {
      await openTab(page, tab);
      const text = (await code()).replaceAll(/^import .*$/gm, "");
      assert.doesNotThrow(() => new AsyncFunction(text), text);
    }
  });

  test("a file of the last visit must be chosen again", async () => {
    await open();
    await ready(page);
    await drop(page, "mine.gguf", Buffer.from("abc"));
    await says(page, "#model-name", /^mine\.gguf$/);
    await ready(page);
    await page.reload();
    await says(page, "#model-state", /^must be chosen again$/);
    assert.match(await page.textContent("#notice-model"), /^mine\.gguf is a file on this device/);
    const [chooser] = await Promise.all([
      page.waitForEvent("filechooser"),
      page.click("#choose-file"),
    ]);
    await chooser.setFiles({ name: "mine.gguf", mimeType: "", buffer: Buffer.from("abc") });
    await ready(page);
    assert.equal(await page.isVisible("#notice-model"), false);
    await page.reload();
    await page.click("#use-embedded");
    await ready(page);
    assert.equal(await page.textContent("#model-name"), "tales");
  });

  test("a download is paused, also over a reload, resumed where it was, and deleted", async () => {
    const slow = await slowServer();
    try {
      await open({ tab: "write" });
      await ready(page);
      await loadUrl(page, slow.url, { back: "write" });
      await says(page, "#progress-text", /6\.0 MB of 10\.0 MB/);
      await page.click("#pause-load");
      await says(page, "#model-state", /^is paused$/);
      assert.equal(await page.evaluate(() => document.activeElement.id), "resume-load");
      await shot(page, "paused");
      // The old model answers meanwhile.
      await page.fill("#prompt", "count:1");
      await page.click("#generate");
      await says(page, "#run-state", /^Done/);
      await page.reload();
      await says(page, "#model-state", /^is paused$/);
      await says(page, "#progress-text", /^4\.2 MB of 10\.0 MB downloaded$/);
      await openTab(page, "models");
      await says(page, "#stored", /slow\.gguf 4\.2 MB of 10\.0 MB, not complete/);
      const before = slow.ranges.length;
      slow.release();
      await page.click("#resume-load");
      await ready(page);
      const resumed = slow.ranges.slice(before);
      assert.ok(resumed.includes(CHUNK_BYTES), `ranges from ${resumed}`);
    } finally {
      slow.close();
    }
    const other = await slowServer();
    try {
      await loadUrl(page, other.url);
      await says(page, "#progress-text", /6\.0 MB of 10\.0 MB/);
      await page.click("#pause-load");
      await page.click("#discard-load");
      await ready(page);
      assert.equal(await page.textContent("#model-name"), "slow.gguf");
      assert.doesNotMatch(await page.textContent("#stored"), /not complete/);
    } finally {
      other.close();
    }
  });

  describe("a model whose load ended with its tab", () => {
    let slow;
    beforeEach(async () => {
      slow = await slowServer();
      await open();
      await ready(page);
      await loadUrl(page, slow.url);
      await says(page, "#progress-text", /6\.0 MB of 10\.0 MB/);
      await page.evaluate(() => {
        const name = Object.keys(localStorage).find((it) => it.startsWith("inpage-load "));
        const mark = localStorage.getItem(name);
        // A mark without its lock, as after a crash.
        const crash = () => localStorage.setItem("inpage-load of a tab that is gone", mark);
        addEventListener("pagehide", crash, { once: true });
      });
      await page.reload();
      await says(
        page,
        "#notice-model",
        /^The tab ended while it loaded this model.*shorter context.*the CPU, or a smaller model\.$/,
      );
      slow.release();
    });
    afterEach(() => slow.close());

    test("waits for the user at the next visit", async () => {
      await shot(page, "crashed");
      await page.click("#choose-other");
      assert.equal(await page.getAttribute("#models-tab", "aria-selected"), "true");
      await page.click("#retry-load");
      await ready(page);
      assert.equal(await page.textContent("#model-name"), "slow.gguf");
      assert.match(await page.textContent("#device"), /Fitted to memorycache in q8_0/);
      await page.reload();
      await ready(page);
      assert.equal(await page.textContent("#model-name"), "slow.gguf");
    });

    test("is loaded on the CPU if the user says so, also at later visits", async () => {
      const device = () =>
        page.evaluate(() => JSON.parse(localStorage.getItem("inpage-demo model")).device);
      assert.equal(await device(), undefined);
      await page.click("#use-cpu");
      await ready(page);
      assert.equal(await page.isVisible("#use-cpu"), false);
      assert.doesNotMatch(await page.textContent("#device"), /Fitted/);
      await page.reload();
      await ready(page);
      assert.deepEqual(
        [await page.textContent("#model-name"), await device()],
        ["slow.gguf", "cpu"],
      );
    });
  });

  test("the notice of the CPU says slow only where it is, and can be dismissed", async () => {
    await open();
    await ready(page);
    const show = (rate) =>
      page.evaluate(async (rate) => {
        const { showCpuNotice } = await import("/demo/models/cpu_notice.js");
        const deviceReason = "wgpu: no adapter found for RequestAdapterOptions";
        showCpuNotice({ device: "cpu", deviceReason }, rate);
        const notice = document.querySelector("#notice-cpu");
        return notice.hidden ? undefined : notice.innerText;
      }, rate);
    assert.match(await show(undefined), /^The model runs on the CPU of this device\.\s/);
    const quick = await show(42.4);
    assert.match(quick, /writes 42\.4 tokens\/s, faster than people read/);
    assert.doesNotMatch(quick, /slow|wgpu/i);
    assert.match(await show(2), /writes 2\.0 tokens\/s, which is slow/);
    assert.equal(await page.isVisible("#cpu-remedies"), false);
    await page.setViewportSize({ width: 390, height: 844 });
    const { height } = await page.locator("#notice-cpu").boundingBox();
    assert.ok(height < 844 / 5, `the notice takes ${height} px of a phone's screen`);
    await page.click("#cpu-dismiss");
    assert.equal(await show(2), undefined);
    await page.reload();
    await ready(page);
    assert.equal(await show(2), undefined);
  });

  test("a prompt without a model is not sent, and the notice goes once a model is ready", async () => {
    const context = await visitor(harness, { tab: "write" });
    await context.route("**/models/tales.gguf", (route) => route.abort());
    page = await harness.open(context, "/demo/");
    await says(page, "#model-state", /^could not be loaded$/, 60_000);
    await page.fill("#prompt", "count:2");
    await page.press("#prompt", "Control+Enter");
    await says(page, "#run-state", /^No model is loaded yet\.$/);
    assert.equal(await page.textContent("#written"), "");
    await context.unroute("**/models/tales.gguf");
    await page.click("#retry-load");
    await ready(page);
    await says(page, "#run-state", /^$/);
    await page.click("#generate");
    await says(page, "#run-state", /^Done/);
    assert.equal(await page.textContent("#written"), "é0 é1 ");
  });

  test("on a phone, the message field is on the first screen, and the tab of models above it", async () => {
    await open({ "simple-template": "tales" });
    await canSend(page);
    const found = async (width) => {
      await page.setViewportSize({ width, height: 844 });
      const { y, height } = await page.locator("#chat-text").boundingBox();
      const tab = await page.locator("#models-tab").boundingBox();
      assert.ok(y + height < 844, `it ends at ${y + height} px`);
      assert.ok(tab.y >= 0 && tab.y + tab.height < y, `the tab ends at ${tab.y + tab.height} px`);
      assert.ok(tab.x + tab.width <= width);
    };
    await found(320);
    await found(390);
    // Nothing covers the tab.
    await openTab(page, "models");
    assert.equal(await page.isVisible("#models-panel"), true);
  });

  test("the tour of the embedded model writes a story and ends at the models", async () => {
    await open();
    await ready(page);
    await page.click("#chat-stories");
    await says(page, "#tour-text", /2\.4 MB/);
    await page.click("#tour-next");
    assert.equal(await page.evaluate(() => document.activeElement.id), "prompt");
    await page.fill("#prompt", "count:2");
    await page.click("#tour-next");
    await says(page, "#run-state", /^Done/);
    await page.click("#tour-next");
    await says(page, "#tour-text", /too small for conversations/);
    await page.click("#tour-next");
    assert.equal(await page.isVisible("#models-panel"), true);
    await openTab(page, "write");
    assert.equal(await page.isVisible("#tour"), false);
    await page.reload();
    await ready(page);
    assert.equal(await page.isVisible("#tour"), false);
    await page.click("#tour-start");
    await says(page, "#tour-count", /^1 of 4$/);
    await page.click("#tour-skip");
    assert.equal(await page.isVisible("#tour"), false);
  });
});
