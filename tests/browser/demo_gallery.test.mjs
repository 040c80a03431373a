//! The gallery of the demo from a user's view, with a fake engine and a catalog of its own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../scripts/process.mjs";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import {
  checkLayout,
  faultsOf,
  fakeDemo,
  openTab,
  ready,
  says,
  shot,
  visitor,
} from "./demo_page.mjs";
import { startHarness } from "./harness.mjs";

/** An entry of the catalog. */
const entry = (name, fields) => ({
  name,
  title: name.toUpperCase(),
  tasks: ["chat"],
  files: { model: `/models/tales.gguf?${name}` },
  bytes: 100_000,
  memory: { context4k: 2e9, context16k: 3e9 },
  licence: "Apache-2.0",
  languages: ["en", "fr"],
  goodFor: `What ${name} is good for.`,
  ...fields,
});

const SAMPLING = { temperature: 0.2, top_k: 40, repetition_penalty: 1.05 };
const MODELS = [
  entry("small", { advice: { tokensPerSecond: 33 }, sampling: SAMPLING }),
  entry("sees", {
    tasks: ["vision", "chat"],
    files: { model: "/models/tales.gguf?sees", projector: "/models/tales.gguf?tower" },
    bytes: 200_000,
    advice: { obstacles: ["needs 2 GB of memory; 1 GB are assumed"] },
  }),
  entry("vectors", { tasks: ["embedding"], files: { model: "/models/tales.gguf?vectors" } }),
  entry("ranks", { tasks: ["rerank"], files: { model: "/models/tales.gguf?ranks" } }),
  ...Array.from({ length: 12 }, (_, index) => entry(`more-${index}`, { bytes: 5e9 + index })),
];

describe("the gallery of the demo", () => {
  let harness;
  let page;
  let faults;

  before(async () => {
    harness = await startHarness({ mounts: await fakeDemo(MODELS) });
  });
  after(() => harness?.close());
  beforeEach(async () => {
    page = await harness.open(await visitor(harness, { tab: "models", tour: "done" }), "/demo/");
    faults = faultsOf(page);
    await ready(page);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(faults, []);
  });

  const card = (name) => page.locator(`[data-model="${name}"]`);
  const names = () => page.$$eval("[data-model]", (all) => all.map((it) => it.dataset.model));

  test("cards say what a model is, the best one for this device first, and a task filters them", async () => {
    await says(page, "#gallery-state", /^8 of 15 models$/);
    assert.deepEqual((await names()).slice(0, 3), ["tales", "small", "sees"]);
    assert.match(await card("tales").innerText(), /^Tales in use/);
    const words = await card("small").innerText();
    for (const part of [
      /^SMALL\n/,
      /What small is good for\./,
      /For\s+chat/,
      /Download\s+100 kB/,
      /Memory\s+2\.0 GB/,
      /Languages\s+English, French/,
      /Licence\s+Apache-2\.0/,
    ])
      assert.match(words, part);
    assert.match(words, /Speed here\s+about 33\.0 tokens\/s$/m);
    assert.doesNotMatch(words, /stored/);
    await page.click("#gallery-more");
    await says(page, "#gallery-state", /^15 of 15 models$/);
    await page.selectOption("#gallery-task", "vision");
    assert.deepEqual(await names(), ["tales", "sees"]);
  });

  /** The code of a completion that was written now. */
  async function written() {
    await openTab(page, "write");
    await page.fill("#prompt", "count:1");
    await page.click("#generate");
    await says(page, "#run-state", /Done/);
    return page.textContent("#code");
  }

  test("a download begins after consent, and a stored model is used at once and deleted", async () => {
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    const download = () => card("small").getByRole("button", { name: "Download" }).click();
    await download();
    assert.equal(await page.locator("#ask").evaluate((dialog) => dialog.open), true);
    assert.equal(await page.textContent("#ask-title"), "Download SMALL?");
    assert.match(
      await page.textContent("#ask-text"),
      /^100 kB from 127\.0\.0\.1:\d+\. .* takes 2\.0 GB of memory .*Licence: Apache-2\.0\.$/,
    );
    await shot(page, "consent");
    await page.keyboard.press("Escape");
    assert.equal(await page.textContent("#model-name"), "tales");
    await download();
    await page.click("#ask-no");
    assert.deepEqual(
      requests.filter((url) => url.includes("?small")),
      [],
    );
    await download();
    await page.click("#ask-yes");
    await says(page, "#model-name", /^SMALL$/);
    await ready(page);
    assert.match(await page.textContent("#code"), /createEngine\(\{ model: "small" \}\)/);
    // The sampling is what its makers recommend.
    assert.equal(await page.inputValue("[name=temperature]"), "0.2");
    assert.equal(await page.inputValue("[name=top_k]"), "40");
    // A chat is what it is for.
    assert.equal(await page.isVisible("#chat-panel"), true);
    assert.match(await written(), /repetition_penalty: 1\.05/);
    await openTab(page, "models");
    await says(page, '[data-model="small"] h3', /^SMALL in use stored$/);
    assert.deepEqual((await names()).slice(0, 2), ["tales", "small"]);

    // It comes back after a reload, and is used without a question when it is stored.
    await page.reload();
    await says(page, "#model-name", /^SMALL$/);
    await ready(page);
    await says(page, '[data-model="small"] h3', /^SMALL in use stored$/);
    await card("tales").getByRole("button").click();
    await says(page, "#model-name", /^tales$/);
    await ready(page);
    assert.equal(await page.inputValue("[name=temperature]"), "0.7");
    assert.doesNotMatch(await written(), /repetition_penalty/);
    await openTab(page, "models");
    await card("small").getByRole("button", { name: "Use" }).click();
    await says(page, "#model-name", /^SMALL$/);
    await ready(page);
    await openTab(page, "models");
    await card("small").getByRole("button", { name: "Delete" }).click();
    await says(page, '[data-model="small"] h3', /^SMALL in use$/);
    // It would be downloaded again without a question.
    await page.reload();
    await says(page, "#model-name", /^tales$/);
  });

  test("a model that sees brings the button for images, and one for search goes to the search", async () => {
    await card("sees").getByRole("button", { name: "Download" }).click();
    await page.click("#ask-yes");
    await says(page, "#model-name", /^SEES$/);
    await ready(page);
    await page.waitForSelector("#chat-template:visible, #chat-image-tools:visible");
    await page.click("#chat-simple");
    await page.waitForSelector("#chat-image-tools:visible");
    await openTab(page, "search");
    await page.click("#search-choose");
    assert.deepEqual(await names(), ["tales", "vectors"]);
    await card("vectors").getByRole("button", { name: "Download" }).click();
    await page.click("#ask-yes");
    await says(page, "#search-model-state", /^VECTORS is ready\.$/);
    // The chat keeps its model.
    assert.equal(await page.textContent("#model-name"), "SEES");
    await openTab(page, "models");
    await says(page, '[data-model="vectors"] h3', /^VECTORS in use stored$/);
  });

  test("a reranker puts what the search finds in order, and offers no chat", async () => {
    await page.selectOption("#gallery-task", "rerank");
    assert.deepEqual(await names(), ["tales", "ranks"]);
    assert.doesNotMatch(await card("ranks").innerText(), /Speed here/);
    await card("ranks").getByRole("button", { name: "Download" }).click();
    await page.click("#ask-yes");
    await says(page, "#rank-model-state", /^RANKS is ready\.$/);
    assert.equal(await page.isVisible("#search-panel"), true);
    assert.equal(await page.textContent("#model-name"), "tales");
    await page.click("#search-choose");
    await card("vectors").getByRole("button", { name: "Download" }).click();
    await page.click("#ask-yes");
    await says(page, "#search-model-state", /^VECTORS is ready\.$/);
    // By its vectors, the second one is closest; the fake reranker prefers short ones.
    await page.fill("#search-text", "A bee.\n\nZebras zip, zigzag and zoom.\n\nZoos open at ten.");
    await page.fill("#search-query", "zebras zip");
    const first = () => page.textContent("#search-results li p");
    await page.press("#search-query", "Enter");
    await says(page, "#search-state", /^The 3 most relevant of 3 passages, the best first\.$/);
    assert.equal(await first(), "A bee.");
    await says(page, "#search-results", /Your text, relevance 0\.14/);

    // It comes back after a reload.
    await page.reload();
    await says(page, "#rank-model-state", /^RANKS is ready\.$/);
    await says(page, "#search-model-state", /^VECTORS is ready\.$/);
    await page.click("#rank-model-drop");
    await says(page, "#rank-model-state", /^Without a reranker/);
    assert.equal(await page.isVisible("#rank-model-drop"), false);
    await page.fill("#search-text", "A bee.\n\nZebras zip, zigzag and zoom.\n\nZoos open at ten.");
    await page.fill("#search-query", "zebras zip");
    await page.press("#search-query", "Enter");
    await says(page, "#search-state", /^The 3 closest of 3 passages/);
    assert.equal(await first(), "Zebras zip, zigzag and zoom.");
  });

  test("a speed is shown once one was measured, and derived for others", async () => {
    await page.evaluate(() => {
      const speeds = { " SMALL": { rate: 50 } };
      localStorage.setItem("inpage-demo speeds", JSON.stringify(speeds));
    });
    await page.reload();
    await ready(page);
    await says(page, '[data-model="small"] dl', /Speed here50\.0 tokens\/s$/);
    // The catalog's estimate, from this speed: of twice the bytes, half of it.
    await says(page, '[data-model="sees"] dl', /Speed hereabout 25\.0 tokens\/s$/);
  });

  test("a card says that its model may not fit, and the question why", async () => {
    await says(page, '[data-model="sees"] dl', /Memory2\.0 GB, may not fit here/);
    await card("sees").getByRole("button", { name: "Download" }).click();
    await says(
      page,
      "#ask-warning",
      /^It may not fit here: it needs 2 GB of memory; 1 GB are assumed\.$/,
    );
    await page.click("#ask-no");
    await card("small").getByRole("button", { name: "Download" }).click();
    assert.equal(await page.isVisible("#ask-warning"), false);
  });

  test("cards and the question fit a phone", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.click("#gallery-more");
    await checkLayout(page, "cards");
    await shot(page, "gallery-phone");
    await card("small").getByRole("button", { name: "Download" }).click();
    await checkLayout(page, "question");
  });
});

/** Pairs of colours: that of text and that of its background. */
const PAIRS = {
  ink: ["ground", "card", "accent-wash", "warn-wash", "bad-wash"],
  soft: ["ground", "card", "accent-wash", "warn-wash"],
  accent: ["ground", "card"],
  "accent-ink": ["accent"],
};

/** The relative luminance of `#rgb` or `#rrggbb`. */
function luminance(hex) {
  const digits = hex.length === 4 ? [...hex.slice(1)].map((it) => it + it) : hex.match(/\w\w/g);
  const [r, g, b] = digits
    .map((it) => Number.parseInt(it, 16) / 255)
    .map((it) => (it <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

test("text has a contrast of at least 4.5 (WCAG AA), in both color schemes", () => {
  const theme = readFileSync(join(root, "www/demo/styles/theme.css"), "utf8");
  const [light, dark] = theme.split("prefers-color-scheme: dark");
  const coloursOf = (css) =>
    Object.fromEntries([...css.matchAll(/--([\w-]+): (#\w+);/g)].map(([, name, it]) => [name, it]));
  for (const [scheme, colours] of Object.entries({
    light: coloursOf(light),
    dark: coloursOf(dark),
  })) {
    for (const [text, grounds] of Object.entries(PAIRS)) {
      for (const ground of grounds) {
        const [a, b] = [text, ground].map((name) => luminance(colours[name]));
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        assert.ok(contrast >= 4.5, `${scheme}: ${text} on ${ground} has ${contrast.toFixed(2)}`);
      }
    }
  }
});
