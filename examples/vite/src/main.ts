//! Loads the embedded model, streams completions into the page, and lets the service worker answer `fetch`.

import { type Engine, createEngine, serveFromPage } from "inpage";
import { embedded } from "inpage/embedded";

const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const state = element("state");
const text = element("text");
const generate = element<HTMLButtonElement>("generate");
const stop = element<HTMLButtonElement>("stop");

async function complete(engine: Engine): Promise<void> {
  const controller = new AbortController();
  stop.onclick = () => controller.abort();
  text.textContent = "";
  state.textContent = "Generating…";
  generate.disabled = true;
  stop.disabled = false;
  try {
    const { value: prompt } = element<HTMLInputElement>("prompt");
    const stream = await engine.completions.create(
      { model: "default", prompt, max_tokens: 64, stream: true },
      { signal: controller.signal },
    );
    for await (const { choices } of stream) text.append(choices[0]?.text ?? "");
    state.textContent = "Done.";
  } catch (error) {
    state.textContent = controller.signal.aborted ? "Stopped." : String(error);
  }
  generate.disabled = false;
  stop.disabled = true;
}

try {
  const engine = await createEngine({
    model: embedded,
    // The CPU device has several threads on hosts without the headers of vite.config.js, too: through /sw.js.
    isolatedFrame: {},
    onProgress: ({ phase, loadedBytes }) => {
      state.textContent = `${phase}: ${loadedBytes} bytes`;
    },
  });
  const { device, adapter, threads, softwareAdapter } = await engine.info();
  const detail = device === "cpu" ? `, threads: ${threads}` : softwareAdapter ? " (slow)" : "";
  state.textContent = `Ready on ${adapter}${detail}.`;
  generate.disabled = false;
  element("form").addEventListener("submit", (event) => {
    event.preventDefault();
    void complete(engine);
  });
  // After this, `fetch("/v1/completions")` is answered in every tab of the site.
  await serveFromPage(engine).ready;
} catch (error) {
  state.textContent = String(error);
}
