//! Runs one completion with the public package in headless Chromium and writes it to the terminal.

import { basename, join } from "node:path";
import { launchChromium } from "./chromium.mjs";
import { root, say } from "./process.mjs";
import { serve } from "./server.mjs";

/**
 * Runs in the page. Streams pieces of text through `window.inpageText` and resolves with the result or `{ error }`.
 * It does not throw, because an exception would lose its fields when it leaves the page.
 */
async function completeInPage({ model, projector, device, request }) {
  let engine;
  try {
    const { createEngine } = await import("/dist/index.js");
    const start = performance.now();
    engine = await createEngine({
      ...(model === undefined ? {} : { model }),
      ...(projector === undefined ? {} : { projector }),
      device,
    });
    const load_ms = performance.now() - start;

    const asked = performance.now();
    let first;
    let last;
    let text = "";
    let finish_reason = null;
    let usage;
    let shown;
    const body = {
      model: "default",
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    };
    for await (const chunk of await engine.completions.create(body)) {
      if (chunk.usage) usage = chunk.usage;
      for (const choice of chunk.choices) {
        if (choice.text !== "") {
          last = performance.now();
          first ??= last;
          text += choice.text;
          shown = window.inpageText(choice.text);
        }
        finish_reason = choice.finish_reason ?? finish_reason;
      }
    }
    const ended = performance.now();
    await shown;
    // The first token ends the prefill; the others are decoded. With a single token, no decode time can be measured.
    const perSecond = (tokens, ms) =>
      tokens > 0 && ms > 0 ? Math.round((tokens / ms) * 10_000) / 10 : null;
    return {
      text,
      finish_reason,
      usage,
      load_ms: Math.round(load_ms),
      prefill_tokens_per_s: perSecond(usage?.prompt_tokens, (first ?? ended) - asked),
      decode_tokens_per_s: perSecond(
        (usage?.completion_tokens ?? 0) - 1,
        (last ?? ended) - (first ?? ended),
      ),
      info: await engine.info(),
    };
  } catch (error) {
    const { name, message, status, type, code, param } = error ?? {};
    return { error: { name, message: message ?? String(error), status, type, code, param } };
  } finally {
    await engine?.dispose();
  }
}

/**
 * Prints the completion; with `json` only the JSON line. `model` is `{ file }`, `{ url }` or undefined for the
 * embedded model, and so is `projector`, or undefined. Resolves with the exit status.
 */
export async function generate({ model, projector, device, request, json }) {
  const mounts = { "/dist/": join(root, "www/dist/"), "/models/": join(root, "www/models/") };
  const sourceOf = (given, folder) => {
    if (given?.file === undefined) return given;
    const path = `/${folder}/${encodeURIComponent(basename(given.file))}`;
    mounts[decodeURIComponent(path)] = given.file;
    // The browser's profile is deleted after this run, so caching is pointless.
    return { url: path, cache: false };
  };
  const sources = { model: sourceOf(model, "local"), projector: sourceOf(projector, "projector") };
  const server = await serve({
    mounts,
    pages: { "/": '<!doctype html><title>inpage</title><link rel="icon" href="data:,">' },
  });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const shows = !json;
    if (shows && process.stdout.isTTY) process.stdout.write(`\x1b[2m${request.prompt}\x1b[22m`);
    await page.exposeFunction("inpageText", (text) => {
      if (shows) process.stdout.write(text);
    });
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") faults.push(message.text());
    });
    await page.goto(`${server.origin}/`);
    const result = await page.evaluate(completeInPage, { ...sources, device, request });
    if (shows) process.stdout.write("\n");
    if (result.error) {
      const { status, type, code, param, name, message } = result.error;
      const kind = [status, type ?? name, code, param].filter((part) => part != null).join(" ");
      say(`inpage: ${kind ? `${kind}: ` : ""}${message}`);
      for (const fault of faults) say(`  browser: ${fault}`);
      return 1;
    }
    const { info, ...line } = result;
    if (shows && info.deviceReason) say(`The CPU computes: ${info.deviceReason}.`);
    Object.assign(line, {
      device: info.device,
      adapter: info.adapter,
      software_adapter: info.softwareAdapter,
      variant: info.variant,
    });
    process.stdout.write(`${JSON.stringify(line)}\n`);
    return 0;
  } finally {
    await browser.close();
    await server.close();
  }
}
