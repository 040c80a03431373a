//! The chat tab of the demo from a user's view, with a fake engine behind the package's own code and, if the wasm module is
//! built, with the real one.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { root } from "../../scripts/process.mjs";
import {
  DEMO,
  canSend,
  checkLayout,
  done,
  faultsOf,
  fakeDemo,
  loadEmbedded,
  loadUrl,
  ready,
  says,
  send,
  shot,
  texts,
  visitor,
} from "./demo_page.mjs";
import { startHarness, wasmIsBuilt } from "./harness.mjs";
import { png } from "./image_files.mjs";

describe("the chat with a fake engine", () => {
  let harness;
  let page;
  let faults;

  before(async () => {
    harness = await startHarness({ mounts: await fakeDemo() });
  });
  after(() => harness?.close());
  beforeEach(async () => {
    const context = await visitor(harness, { "simple-template": "tales", tab: "chat" });
    page = await harness.open(context, "/demo/");
    faults = faultsOf(page);
    await canSend(page);
  });
  afterEach(async () => {
    await page.context().close();
    assert.deepEqual(faults, []);
  });

  test("a message is sent with Enter, and the answer is streamed", async () => {
    await page.fill("#chat-text", "hold");
    await page.press("#chat-text", "Shift+Enter");
    assert.equal(await page.inputValue("#chat-text"), "hold\n");
    assert.deepEqual(await texts(page), []);
    await send(page, "hold");
    // The engine holds the answer back after three pieces: they are shown before its end.
    await says(page, ".message.assistant .text", /^é0 é1 é2 $/);
    assert.equal(await page.isVisible(".message.assistant .tools"), false);
    assert.equal(await page.inputValue("#chat-text"), "");
    await page.keyboard.press("Escape");
    await says(page, "#chat-state", /^Stopped\.$/);
    assert.deepEqual(await texts(page), ["hold", "é0 é1 é2"]);
    assert.equal(await page.isEnabled("#chat-stop"), false);
    // The next message goes on after what was written.
    await send(page, "count:2");
    await done(page);
    assert.deepEqual(await texts(page), ["hold", "é0 é1 é2", "count:2", "é0 é1"]);
  });

  test("the stop button ends an answer, and an answer without text is not kept", async () => {
    await send(page, "hold");
    await says(page, ".message.assistant .text", /é2/);
    await page.click("#chat-stop");
    await says(page, "#chat-state", /^Stopped\.$/);
    assert.equal(await page.evaluate(() => document.activeElement.id), "chat-text");
    await send(page, "count:9:60000");
    await says(page, "#chat-state", /^Reading/);
    await page.click("#chat-stop");
    await says(page, "#chat-state", /^Stopped\.$/);
    assert.deepEqual(await texts(page), ["hold", "é0 é1 é2", "count:9:60000"]);
    assert.equal(await page.isVisible("#chat-retry"), true);
    await send(page, "count:0");
    await says(page, "#chat-state", /^The model wrote nothing\.$/);
    assert.equal((await texts(page)).at(-1), "count:0");
  });

  test("an edit of a message removes what follows and sends it again", async () => {
    await send(page, "count:1");
    await done(page);
    await send(page, "count:2");
    await done(page);
    await page.click(".message.user >> nth=0 >> text=Edit");
    await page.keyboard.press("Escape");
    assert.deepEqual(await texts(page), ["count:1", "é0", "count:2", "é0 é1"]);
    await page.click(".message.user >> nth=0 >> text=Edit");
    await page.fill(".edit textarea", "count:3");
    await page.press(".edit textarea", "Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "thread");
    await says(page, ".message.assistant .text", /é2/);
    await done(page);
    assert.deepEqual(await texts(page), ["count:3", "é0 é1 é2"]);
  });

  test("the last answer is written again", async () => {
    await send(page, "count:1");
    await done(page);
    await send(page, "count:2");
    await done(page);
    const sent = page.evaluate(() => {
      const { postMessage } = MessagePort.prototype;
      return new Promise((resolve) => {
        MessagePort.prototype.postMessage = function (message, ...rest) {
          if (message.type === "request") resolve(new TextDecoder().decode(message.request.body));
          return postMessage.call(this, message, ...rest);
        };
        document.querySelector(".message:last-child .tools button:last-child").click();
      });
    });
    const { messages } = JSON.parse(await sent);
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ["user", "count:1"],
        ["assistant", "é0 "],
        ["user", "count:2"],
      ],
    );
    await done(page);
    assert.deepEqual(await texts(page), ["count:1", "é0", "count:2", "é0 é1"]);
    // An answer that cannot be written again stays.
    await page.evaluate(() => {
      const input = document.querySelector("[name=temperature]");
      input.max = "5";
      input.value = "5";
    });
    await page.click("text=Regenerate");
    await says(page, "#chat-error", /temperature must be at most 2/i);
    assert.deepEqual(await texts(page), ["count:1", "é0", "count:2", "é0 é1"]);
    const regenerating = await page.locator("text=Regenerate").count();
    assert.equal(regenerating, 1, "only the last answer can be written again");
  });

  /** The stored form of the last message of the page's only conversation. */
  const stored = () =>
    page.evaluate(async () => {
      const outcome = (request) =>
        new Promise((resolve, reject) => {
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
      const database = await outcome(indexedDB.open("inpage-demo-chat"));
      const store = database.transaction("conversations").objectStore("conversations");
      const all = await outcome(store.getAll());
      database.close();
      return all[0]?.messages.at(-1);
    });

  test("an answer stays until the one that replaces it has text", async () => {
    await send(page, "hold");
    await says(page, ".message.assistant .text", /é2/);
    await page.keyboard.press("Escape");
    await says(page, "#chat-state", /^Stopped\.$/);
    const answer = await stored();
    // The same message is answered after a minute.
    await page.click(".message.user >> text=Edit");
    await page.fill(".edit textarea", "count:2");
    await page.press(".edit textarea", "Enter");
    await done(page);
    assert.equal(answer.isIncomplete, undefined);
    await page.evaluate(() => {
      const { postMessage } = MessagePort.prototype;
      MessagePort.prototype.postMessage = function (message, ...rest) {
        if (message.type === "request") {
          const body = JSON.parse(new TextDecoder().decode(message.request.body));
          body.messages.at(-1).content = "count:9:60000";
          message.request.body = new TextEncoder().encode(JSON.stringify(body));
          return postMessage.call(this, message);
        }
        return postMessage.call(this, message, ...rest);
      };
    });
    await page.click("text=Regenerate");
    await says(page, "#chat-state", /^Reading/);
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    assert.equal((await stored()).content, "é0 é1 ");
    await page.click("#chat-stop");
    await says(page, "#chat-state", /^Stopped\.$/);
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    assert.equal(await page.isVisible("text=Regenerate"), true);
    // A tab that ends meanwhile does not lose it either.
    await page.click("text=Regenerate");
    await says(page, "#chat-state", /^Reading/);
    await page.reload();
    await canSend(page);
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    assert.equal(
      await page.isVisible(".message:last-child >> text=This answer is incomplete"),
      false,
    );
  });

  test("an answer whose tab ends is kept as incomplete, and can be continued", async () => {
    await send(page, "hold");
    await says(page, ".message.assistant .text", /é2/);
    // It is kept while it is written, not only when the page is told that it ends.
    for (const end = Date.now() + 20_000; (await stored())?.content !== "é0 é1 é2 "; ) {
      assert.ok(Date.now() < end, "the answer is not kept");
      await page.waitForTimeout(50);
    }
    await page.reload();
    await canSend(page);
    assert.deepEqual(await texts(page), ["hold", "é0 é1 é2"]);
    assert.equal(
      await page.isVisible(".message:last-child >> text=This answer is incomplete"),
      true,
    );
    assert.equal(await page.isVisible("text=Regenerate"), true);
    await shot(page, "chat-incomplete");
    const sent = page.evaluate(() => {
      const { postMessage } = MessagePort.prototype;
      return new Promise((resolve) => {
        MessagePort.prototype.postMessage = function (message, ...rest) {
          if (message.type === "request") resolve(new TextDecoder().decode(message.request.body));
          return postMessage.call(this, message, ...rest);
        };
      });
    });
    await page.click(".tools >> text=Continue");
    const body = JSON.parse(await sent);
    assert.equal(body.continue_final_message, true);
    assert.deepEqual(
      body.messages.map(({ role, content }) => [role, content]),
      [
        ["user", "hold"],
        ["assistant", "é0 é1 é2 "],
      ],
    );
    await done(page);
    const [, whole] = await texts(page);
    assert.match(whole, /^é0 é1 é2é0 é1/);
    assert.equal(
      await page.isVisible(".message:last-child >> text=This answer is incomplete"),
      false,
    );
    assert.equal(await page.isVisible(".tools >> text=Continue"), false);
    await page.reload();
    await canSend(page);
    assert.deepEqual(await texts(page), ["hold", whole]);
    assert.equal(
      await page.isVisible(".message:last-child >> text=This answer is incomplete"),
      false,
    );
  });

  test("text that is not kept yet is saved when the page is left", async () => {
    await send(page, "hold");
    await says(page, ".message.assistant .text", /é0/);
    await page.goto(`${harness.origin}/demo/theme.css`);
    await page.goto(`${harness.origin}/demo/`);
    await canSend(page);
    assert.match((await texts(page))[1] ?? "", /^é0/);
    assert.equal(
      await page.isVisible(".message:last-child >> text=This answer is incomplete"),
      true,
    );
  });

  test("the system message and the sampling fields are sent", async () => {
    await page.click("summary:has-text('System message')");
    await page.fill("#chat-system", "Answer in rhymes.");
    await page.evaluate(() => {
      document.querySelector("#sampling-card").open = true;
    });
    await page.fill("[name=temperature]", "0");
    await page.fill("[name=max_tokens]", "7");
    const sent = page.evaluate(() => {
      const { postMessage } = MessagePort.prototype;
      return new Promise((resolve) => {
        MessagePort.prototype.postMessage = function (message, ...rest) {
          if (message.type === "request") resolve(new TextDecoder().decode(message.request.body));
          return postMessage.call(this, message, ...rest);
        };
      });
    });
    await send(page, "count:1");
    const { messages, temperature, max_tokens, stop } = JSON.parse(await sent);
    assert.deepEqual(messages[0], { role: "system", content: "Answer in rhymes." });
    assert.deepEqual([temperature, max_tokens, stop], [0, 7, ["\nUser:", "\nAssistant:"]]);
    await done(page);
    await page.reload();
    await page.waitForFunction(
      () => document.querySelector("#chat-system").value === "Answer in rhymes.",
    );
  });

  test("reasoning is folded", async () => {
    await send(page, "think:What would a fox say?");
    await done(page);
    assert.equal(await page.locator(".message.assistant summary").textContent(), "Reasoning");
    assert.equal(await page.isVisible(".message.assistant .reasoning > div"), false);
    await page.click(".message.assistant summary");
    assert.equal(
      await page.innerText(".message.assistant .reasoning > div"),
      "What would a fox say?",
    );
    assert.deepEqual((await texts(page))[1], "Done.");
    // A message without reasoning shows nothing to unfold.
    await send(page, "count:1");
    await done(page);
    assert.equal(await page.isVisible(".message:last-child .reasoning"), false);
  });

  test("images are picked, pasted and dropped, shown with their tokens, sent and kept", async () => {
    assert.equal(await page.isVisible("#chat-image-tools"), false);
    const url = `${harness.origin}/models/tales.gguf`;
    await loadUrl(page, url, { projector: `${url}?projector`, back: "chat" });
    await page.waitForSelector("#chat-simple:visible, #chat-image-tools:visible");
    if (await page.isVisible("#chat-simple")) await page.click("#chat-simple");
    await page.waitForSelector("#chat-image-tools:visible");
    await canSend(page);
    const data = Buffer.from(Array.from({ length: 48 * 32 * 3 }, (_, i) => (i * 7) % 256));
    const buffer = png({ width: 48, height: 32, data });
    const picked = { name: "a.png", mimeType: "image/png", buffer };
    await page.setInputFiles("#chat-image-file", picked);
    await says(page, "#chat-images", /19 tokens, read in \d+\.\d s/);
    const transfer = await page.evaluateHandle((bytes) => {
      const given = new DataTransfer();
      given.items.add(new File([new Uint8Array(bytes)], "b.png", { type: "image/png" }));
      return given;
    }, Array.from(buffer));
    await page.evaluate((clipboardData) => {
      const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
      document.querySelector("#chat-text").dispatchEvent(event);
    }, transfer);
    await page.dispatchEvent("body", "drop", { dataTransfer: transfer });
    await page.waitForFunction(() => document.querySelectorAll("#chat-images li").length === 3);
    await page.click("#chat-images li:last-child button");
    assert.equal(await page.locator("#chat-images li").count(), 2);
    await shot(page, "chat-image-tray");

    await send(page, "say:images");
    await done(page);
    const size = `${buffer.length} bytes`;
    assert.deepEqual(await texts(page), ["say:images", `${size}, ${size}`]);
    assert.equal(await page.locator("#chat-images li").count(), 0);
    const shown = (selector) =>
      page.$$eval(selector, (all) => all.filter(({ naturalWidth }) => naturalWidth === 48).length);
    await page.waitForFunction(() =>
      [...document.querySelectorAll("#messages img")].every(({ complete }) => complete),
    );
    assert.equal(await shown("#messages .message.user img"), 2);
    await shot(page, "chat-images");

    await page.reload();
    await canSend(page);
    await page.waitForFunction(() => document.querySelectorAll("#messages img").length === 2);
    // The model is loaded again with its projector. The embedded one takes no images.
    await page.waitForSelector("#chat-image-tools:visible");
    await loadEmbedded(page, "chat");
    await page.waitForSelector("#chat-image-tools", { state: "hidden" });
    await page.dispatchEvent("body", "drop", {
      dataTransfer: await page.evaluateHandle((bytes) => {
        const given = new DataTransfer();
        given.items.add(new File([new Uint8Array(bytes)], "b.png", { type: "image/png" }));
        return given;
      }, Array.from(buffer)),
    });
    await says(page, "#chat-state", /takes no images/);
  });

  test("markdown becomes elements", async () => {
    const text = [
      "# Title",
      "**bold** _slanted_ ~~gone~~ `code` <b>raw</b> &amp; \\*star\\*",
      "- one\n- two\n  1. inner",
      "> quoted",
      "```js\nlet x = '<i>';\n```",
      "| a | b |\n|--:|---|\n| 1 | 2 |",
      "[link](https://example.com/a) ![image](https://example.com/p.png)",
      "---",
    ].join("\n\n");
    await send(page, `say:${text}`);
    await done(page);
    const html = await page.$eval(".message.assistant .text", (it) => it.innerHTML);
    for (const part of [
      "<h3>Title</h3>",
      "<strong>bold</strong> <em>slanted</em> <del>gone</del> <code>code</code> &lt;b&gt;raw&lt;/b&gt; &amp; *star*",
      "<li>one</li>",
      '<ol start="1"><li>inner</li></ol>',
      "<blockquote><p>quoted</p></blockquote>",
      "<code>let x = '&lt;i&gt;';</code>",
      '<td class="align-right">1</td><td>2</td>',
      '<a href="https://example.com/a" target="_blank" rel="noopener noreferrer">link</a>',
      '<a href="https://example.com/p.png" target="_blank" rel="noopener noreferrer">[image]</a>',
      "<hr>",
    ]) {
      assert.ok(html.includes(part), `${part} is not in ${html}`);
    }
    // A user's message stays as it was typed.
    assert.equal((await texts(page))[0], `say:${text}`);
  });

  test("hostile messages run no script and fetch nothing", async () => {
    const requests = [];
    page.on("request", (request) => requests.push(request.url()));
    await page.exposeFunction("attacked", (how) => faults.push(`attacked: ${how}`));
    const hostile = [
      "<script>attacked(1)</script>",
      "<img src=x onerror=attacked(2)>",
      '<svg onload="attacked(3)"></svg><iframe srcdoc="<script>parent.attacked(4)</script>"></iframe>',
      "[click](javascript:attacked(5)) [click](  JaVaScRiPt:attacked(5)) [d](data:text/html,x) [v](vbscript:x)",
      '![x](x" onerror="attacked(6)) ![x](https://evil.example/track.png)',
      '<https://evil.example/" onmouseover="attacked(7)> [r](//evil.example)',
      '```"><img src=x onerror=attacked(8)>\n</code></pre><script>attacked(9)</script>\n```',
      "<details open ontoggle=attacked(10)><style>*{display:none}</style>",
      "| <img src=x onerror=attacked(11)> |\n|---|\n| <b onclick=attacked(12)>x</b> |",
      `${">".repeat(20_000)} deep`,
      `${"[".repeat(20_000)} open`,
    ];
    for (const text of hostile) {
      // In both roles, and in the title and the list of conversations.
      await page.click("#chat-new");
      await send(page, `say:${text}`);
      await done(page);
    }
    const found = await page.evaluate(() => {
      const links = [...document.querySelectorAll("#messages a")].map(({ href }) => href);
      const bad = document.querySelectorAll(
        "#chat-panel :is(script, img, svg, iframe, style, object, embed)",
      );
      const handlers = [...document.querySelectorAll("#chat-panel *")].flatMap((element) =>
        element.getAttributeNames().filter((name) => name.startsWith("on")),
      );
      return { links, bad: bad.length, handlers };
    });
    assert.deepEqual([found.bad, found.handlers], [0, []]);
    const addresses = await page.evaluate(async (hostile) => {
      const { markdown } = await import("/demo/chat/markdown.js");
      return hostile.flatMap((text) => {
        const all = markdown(text).querySelectorAll("[href], [src], [style]");
        return [...all].map((element) => element.getAttribute("href"));
      });
    }, hostile);
    for (const address of addresses) assert.match(address, /^(https?|mailto):/);
    assert.deepEqual(
      requests.filter((url) => !url.startsWith(harness.origin)),
      [],
    );
    assert.equal(
      requests.some((url) => url.endsWith("/x")),
      false,
    );
  });

  test("conversations survive a reload, and are listed, renamed and deleted", async () => {
    await send(page, "count:1");
    await done(page);
    await page.click("#chat-new");
    assert.deepEqual(await texts(page), []);
    await send(page, "count:2");
    await done(page);
    await says(page, "#chat-count", /^Conversations \(2\)$/);
    await page.click("#chat-count");
    await page.click("#chat-rename");
    await page.fill("#chat-name", "Foxes");
    await page.press("#chat-name", "Enter");
    await says(page, "#chat-title", /^Foxes$/);
    await says(page, "#chat-list", /Foxes.*count:1/);
    await page.reload();
    await says(page, "#chat-title", /^Foxes$/);
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    // The template that was chosen is used again.
    await canSend(page);
    await page.click("#chat-count");
    await page.click("#chat-list >> text=count:1");
    await says(page, "#chat-title", /^count:1$/);
    assert.deepEqual(await texts(page), ["count:1", "é0"]);
    let asked;
    page.on("dialog", (dialog) => {
      asked = dialog.message();
      void dialog.accept();
    });
    await page.click("#chat-delete");
    await says(page, "#chat-count", /^Conversations \(1\)$/);
    assert.match(asked, /count:1/);
    assert.deepEqual(await texts(page), ["count:2", "é0 é1"]);
    await page.reload();
    await says(page, "#chat-count", /^Conversations \(1\)$/);
  });

  test("a message whose answer had not begun before a reload can be answered", async () => {
    await send(page, "count:9:60000");
    await says(page, "#chat-state", /^Reading/);
    await page.reload();
    await says(page, ".message.user .text", /^count:9:60000$/);
    assert.deepEqual(await texts(page), ["count:9:60000"]);
    await canSend(page);
    await page.click("#chat-retry");
    await says(page, "#chat-state", /^Reading/);
    assert.equal(await page.locator(".message.assistant").count(), 1);
  });

  test("a conversation is exported as JSON and as Markdown", async () => {
    await send(page, "think:Hm.\nWell.");
    await done(page);
    await page.click("#chat-count");
    const save = async (button) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
      return [download.suggestedFilename(), readFileSync(await download.path(), "utf8")];
    };
    const [name, json] = await save("#chat-json");
    assert.equal(name, "think-Hm.json");
    const { title, messages, system } = JSON.parse(json);
    assert.deepEqual([title, system], ["think:Hm.", ""]);
    assert.deepEqual(messages, [
      { role: "user", content: "think:Hm.\nWell." },
      { role: "assistant", content: "Done.", reasoning: "Hm.\nWell." },
    ]);
    const [markdownName, markdown] = await save("#chat-markdown");
    assert.equal(markdownName, name.replace("json", "md"));
    assert.equal(
      markdown,
      "# think:Hm.\n\n## User\n\nthink:Hm.\nWell.\n\n## Assistant\n\n> Hm.\n> Well.\n\nDone.\n",
    );
  });

  test("errors are explained, and the conversation stays", async () => {
    await send(page, "error-after:9");
    assert.match(await says(page, "#chat-error", /./), /^Bad\./);
    assert.deepEqual(await texts(page), ["error-after:9", "é0 é1"]);
    await send(page, "panic-after:9");
    await says(page, "#chat-error", /fake engine panicked/);
    // The next answer uses a new engine.
    await send(page, "count:1");
    await done(page);
    assert.equal(await page.isVisible("#chat-error"), false);
    // A request that is refused before anything is written.
    await page.evaluate(() => {
      const input = document.querySelector("[name=temperature]");
      input.max = "5";
      input.value = "5";
    });
    await send(page, "count:1");
    await says(page, "#chat-error", /temperature must be at most 2/i);
    assert.equal((await texts(page)).at(-1), "count:1");
    assert.equal(await page.isVisible("#chat-retry"), true);
  });

  test("a full storage is reported", async () => {
    await page.evaluate(() => {
      IDBObjectStore.prototype.put = () => {
        throw new DOMException("no room", "QuotaExceededError");
      };
    });
    await send(page, "count:1");
    await says(page, "#chat-storage", /storage of this site is full.*not saved/i);
    await done(page);
    assert.deepEqual(await texts(page), ["count:1", "é0"]);
  });

  test("nothing overflows every control has a name and targets are large on a phone, at any width and in both color schemes", async () => {
    const long = `say:## Rivers\n\nThe **Nile** is \`long\`:\n\n1. ${"word ".repeat(40)}\n2. ${"x".repeat(300)}\n\n| ${"column | ".repeat(12)}\n|${"---|".repeat(12)}\n| ${"cell | ".repeat(12)}\n\n\`\`\`js\nconst line = "${"y".repeat(200)}";\n\`\`\``;
    await send(page, "think:Which rivers are there?");
    await done(page);
    await send(page, long);
    await done(page);
    await page.click("#chat-count");
    await page.click("summary:has-text('System message')");
    for (const [width, colorScheme] of [
      [320, "light"],
      [390, "dark"],
      [390, "light"],
      [1200, "light"],
      [1200, "dark"],
    ]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await shot(page, `chat-${width}-${colorScheme}`);
      await checkLayout(page, `${width} px, ${colorScheme}`);
    }
  });
});

describe("the chat without a template or a model", () => {
  let harness;
  before(async () => {
    harness = await startHarness({ mounts: DEMO });
  });
  after(() => harness?.close());

  test("tabs are chosen by keyboard, and the last one is shown at the next visit", async () => {
    const page = await harness.open(undefined, "/demo/");
    const shown = () => page.evaluate(() => document.querySelector(".panel:not([hidden])").id);
    assert.equal(await shown(), "chat-panel");
    await page.focus("#chat-tab");
    for (const [key, tab] of [
      ["ArrowRight", "write"],
      ["End", "models"],
      ["ArrowRight", "chat"],
      ["ArrowLeft", "models"],
      ["ArrowLeft", "search"],
    ]) {
      await page.keyboard.press(key);
      assert.equal(await shown(), `${tab}-panel`);
      assert.equal(await page.evaluate(() => document.activeElement.id), `${tab}-tab`);
    }
    await page.reload();
    assert.equal(await shown(), "search-panel");
    await page.context().close();
  });

  test("without a model, a message is not sent and stays in its field", async () => {
    const context = await harness.browser.newContext();
    await context.route("**/models/tales.gguf", (route) => route.abort());
    const page = await harness.open(context, "/demo/");
    await says(page, "#model-state", /^could not be loaded$/, 60_000);
    await page.click("#chat-tab");
    await send(page, "Hello");
    await says(page, "#chat-state", /^No model is loaded/);
    assert.equal(await page.inputValue("#chat-text"), "Hello");
    assert.deepEqual(await texts(page), []);
    // The notice is not true any more once a model is there.
    await context.unroute("**/models/tales.gguf");
    await page.click("#retry-load");
    await ready(page);
    await page.waitForSelector("#chat-template:visible");
    assert.equal(await page.textContent("#chat-state"), "");
    await context.close();
  });
});

const TALES = join(root, "www/models/tales.gguf");
const skip = !wasmIsBuilt
  ? "skipped: the wasm module is not built"
  : !existsSync(TALES) && `skipped: ${TALES} does not exist`;

describe("the chat with the embedded model", { skip }, () => {
  let harness;
  let page;
  before(async () => {
    harness = await startHarness({ mounts: DEMO });
    page = await harness.open(undefined, "/demo/");
    await ready(page);
  });
  after(() => harness?.close());

  test("a model without a chat template says so and takes the simple one", async () => {
    await page.click("#chat-tab");
    await page.waitForSelector("#chat-template:visible");
    assert.match(await page.innerText("#chat-template"), /no chat template/);
    await send(page, "Hello");
    await says(page, "#chat-state", /no chat template/);
    await shot(page, "chat-no-template");
    await page.click("#chat-simple");
    await canSend(page);
    assert.equal(await page.isVisible("#chat-template"), false);
    assert.equal(await page.inputValue("#chat-text"), "Hello");
  });

  test("it answers the same again, and the conversation survives a reload", async () => {
    await page.evaluate(() => {
      document.querySelector("#sampling-card").open = true;
    });
    await page.fill("[name=temperature]", "0");
    await page.fill("[name=max_tokens]", "24");
    await send(page, "Tell me a story about a little fox.");
    await done(page);
    const [, first] = await texts(page);
    assert.match(first, /[a-z]{3}/);
    await page.click("text=Regenerate");
    await done(page);
    assert.deepEqual(await texts(page), ["Tell me a story about a little fox.", first]);
    await send(page, "The fox went home. One day, he saw");
    await done(page);
    const all = await texts(page);
    assert.equal(all.length, 4);
    await shot(page, "chat-real");
    await page.reload();
    await ready(page);
    assert.deepEqual(await texts(page), all);
  });
});
