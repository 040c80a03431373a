//! A chat. The model is downloaded with the first message and kept by the browser. `?model=` names another one.

import { getEngine, type ChatRequestMessage } from "inpage";

const model = new URLSearchParams(location.search).get("model") ?? "qwen3-0.6b";
const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const state = element("state");
const input = element<HTMLInputElement>("message");
const send = element<HTMLButtonElement>("send");
const stop = element<HTMLButtonElement>("stop");
const messages: ChatRequestMessage[] = [];

/** Adds a message to the page. */
function show(text: string): HTMLElement {
  const item = document.createElement("li");
  item.textContent = text;
  element("messages").append(item);
  return item;
}

async function answer(signal: AbortSignal): Promise<void> {
  const engine = await getEngine({
    model,
    isolatedFrame: {},
    onProgress: ({ phase, loadedBytes, totalBytes }) => {
      const share = totalBytes ? ` ${Math.round((100 * loadedBytes) / totalBytes)} %` : "";
      state.textContent = `${phase}${share}`;
    },
  });
  state.textContent = "Answering…";
  const body = { model: "default", messages, max_tokens: 512, stream: true } as const;
  const stream = await engine.chat.completions.create(body, { signal });
  const item = show("");
  let content = "";
  try {
    for await (const { choices } of stream) {
      content += choices[0]?.delta.content ?? "";
      item.textContent = content;
    }
  } finally {
    messages.push({ role: "assistant", content });
  }
}

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (input.value === "" || send.disabled) return;
  messages.push({ role: "user", content: input.value });
  show(input.value);
  input.value = "";
  const controller = new AbortController();
  stop.onclick = () => controller.abort();
  send.disabled = true;
  stop.disabled = false;
  try {
    await answer(controller.signal);
    state.textContent = "";
  } catch (error) {
    state.textContent = controller.signal.aborted ? "Stopped." : String(error);
  }
  send.disabled = false;
  stop.disabled = true;
});
