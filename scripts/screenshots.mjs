//! `npm run screenshots -- [--model FILE.gguf] [--embeddings FOLDER] [--only NAME]`: drives the demo in headless Chromium with a model that
//! chats, and writes the screenshots of README and the documents into `docs`. Fails if the page writes to the console. The package
//! must be built. Without options, the real models of the tests stand on a local server for the files of the catalog.

import { existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import sharp from "sharp";
import { canSend, done, says as saysWithin, send, visitor } from "../tests/browser/demo_page.mjs";
import { provideRealModels } from "../tests/real/models.mjs";
import { launchChromium } from "./chromium.mjs";
import { main, Remediable, root, say } from "./process.mjs";
import { serve } from "./server.mjs";

const LIMIT_MS = 180_000;

const DESKTOP = { viewport: { width: 1180, height: 860 }, colorScheme: "light" };
const PHONE = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
  colorScheme: "dark",
};

const NOTES = `The train to the coast leaves at nine, from the second platform. Tickets are in the blue folder.

For the soup: two onions, a kilogram of tomatoes, basil. Simmer for forty minutes and add cream at the end.

The cat needs its medicine every evening after dinner. The vet's number is on the fridge.

Plants on the balcony want water every other day, the cactus only once in a month.`;

const HUB = "https://huggingface.co/";
/** The models of the catalog that the real models of the tests stand for. */
const NAMES = { chat: "smollm2-135m-instruct", embeddings: "all-minilm-l6-v2" };

/** The files `{ chat, embeddings }`, of the tests' real models if none is named; the latter may be missing. */
async function modelsOf({ model, embeddings }) {
  const real = model ? {} : await provideRealModels();
  const chat = model ?? real.smolLm2;
  if (!chat || !existsSync(chat)) {
    throw new Remediable(
      "there is no model that chats",
      "Name one with --model FILE.gguf, such as SmolLM2-135M-Instruct.",
    );
  }
  return { chat: resolve(chat), embeddings: embeddings ?? real.miniLm };
}

/** The choice of a visitor: `option` of its own, or the model of the catalog. */
async function choiceOf(name, path, option) {
  if (option !== undefined) return JSON.stringify({ name: basename(path), option });
  const { catalog } = await import(pathToFileURL(join(root, "www/dist/catalog/models.js")));
  const { title, files } = catalog.find((model) => model.name === name);
  return JSON.stringify({ name: title, option: files.model, catalogName: name });
}

/** The hub's files are those of the local server: a model in GGUF, or a file of the folder. */
const fromHub = (origin, chat) => (route) => {
  const [, name] = /\/resolve\/[^/]+\/(.+)$/.exec(route.request().url());
  const path = name.endsWith(".gguf") ? basename(chat) : `all-MiniLM-L6-v2/${name}`;
  const headers = { location: `${origin}/${path}`, "access-control-allow-origin": "*" };
  return route.fulfill({ status: 302, headers });
};

/** Opens the demo with what it has kept of an earlier visit. */
async function openDemo(setting, options, memory) {
  const context = await visitor(setting, memory, options);
  await context.route(`${HUB}**`, setting.fromHub);
  const page = await context.newPage();
  const { messages, origin } = setting;
  page.setDefaultTimeout(LIMIT_MS);
  page.on("console", (message) => messages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => messages.push(`error: ${error.message}`));
  await page.goto(`${origin}/demo/`);
  return page;
}

const says = (page, selector, pattern) => saysWithin(page, selector, pattern, LIMIT_MS);

async function ask(page, text) {
  await canSend(page);
  await send(page, text);
  await says(page, "#chat-state", /Writing/);
  await done(page);
}

/** Few colours: the images are a third as large. */
async function write(page, name) {
  await page.evaluate(() => scrollTo(0, 0));
  const png = await page.screenshot({ animations: "disabled" });
  const file = join(root, "docs", name);
  const { size } = await sharp(png)
    .png({ palette: true, colours: 128, compressionLevel: 9 })
    .toFile(file);
  say(`docs/${name}: ${Math.round(size / 1000)} kB`);
}

/** The content of each screenshot. */
const SCENES = {
  async chat(setting) {
    const page = await openDemo(setting, DESKTOP, setting.memory);
    await ask(page, "Give me three tips for learning a language.");
    // The model and the conversation come back.
    await page.reload();
    await says(page, "#messages", /Give me three tips/);
    await ask(page, "Which one should I start with?");
    await write(page, "demo.png");
    // The list of models then knows the speed of this device.
    await page.click("#models-tab");
    await says(page, "#gallery", /Speed here/);
    await write(page, "demo-models.png");
    await page.context().close();
  },
  async phone(setting) {
    const page = await openDemo(setting, PHONE, setting.memory);
    await ask(page, "Why is the sky blue? Answer in two sentences.");
    await write(page, "demo-phone.png");
    await page.context().close();
  },
  async write(setting) {
    const page = await openDemo(setting, DESKTOP, { tab: "write" });
    await says(page, "#model-state", /is ready/);
    await page.fill("[name=max_tokens]", "90");
    await page.click("#tour-next");
    await page.click("#tour-next");
    await says(page, "#run-state", /Done/);
    await write(page, "demo-write.png");
    await page.context().close();
  },
  async search(setting) {
    if (!setting.searchModel) return say("docs/demo-search.png: skipped without --embeddings");
    const memory = { tab: "search", "search-model": setting.searchModel };
    const page = await openDemo(setting, DESKTOP, memory);
    await says(page, "#search-model-state", /is ready/);
    await page.fill("#search-text", NOTES);
    await page.fill("#search-query", "When must I feed the animal its pills?");
    await page.click("#search-submit");
    await says(page, "#search-state", /closest of/);
    await page.locator("#search-results").scrollIntoViewIfNeeded();
    await write(page, "demo-search.png");
    await page.context().close();
  },
};

await main(async (args) => {
  const { values } = parseArgs({
    args,
    options: {
      model: { type: "string" },
      embeddings: { type: "string" },
      only: { type: "string" },
    },
  });
  const { chat, embeddings } = await modelsOf(values);
  const www = join(root, "www/");
  const mounts = { "/": www, "/sw.js": join(www, "dist/sw.js"), [`/${basename(chat)}`]: chat };
  if (embeddings) mounts["/all-MiniLM-L6-v2/"] = `${resolve(embeddings)}/`;
  const server = await serve({ mounts, isolated: true, cors: true });
  const browser = await launchChromium();
  const messages = [];
  try {
    const { origin } = server;
    const own = values.model && { url: `${origin}/${basename(chat)}` };
    const ownFolder = values.embeddings && { folder: `${origin}/all-MiniLM-L6-v2/` };
    const memory = {
      tab: "chat",
      model: await choiceOf(NAMES.chat, chat, own),
      sampling: JSON.stringify({ temperature: "0.2", max_tokens: "160", seed: "1" }),
    };
    const searchModel = embeddings && (await choiceOf(NAMES.embeddings, embeddings, ownFolder));
    const setting = {
      ...{ browser, origin, memory, messages, searchModel },
      fromHub: fromHub(origin, chat),
    };
    for (const [name, scene] of Object.entries(SCENES)) {
      if (values.only === undefined || values.only === name) await scene(setting);
    }
  } finally {
    await browser.close();
    await server.close();
  }
  if (messages.length === 0) return 0;
  throw new Remediable(`the page wrote to the console:\n${messages.join("\n")}`, "Fix the page.");
});
