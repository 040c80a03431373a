//! Questions about a picture, which stays in the page. `?model=` and `&projector=` name another model.

import { getEngine } from "inpage";

const place = new URLSearchParams(location.search);
const [model, projector] = [place.get("model"), place.get("projector")];
const options =
  model && projector ? { model, projector } : { model: model ?? "smolvlm-256m-instruct" };
const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const state = element("state");
const answer = element("answer");
const button = element<HTMLButtonElement>("ask");

async function ask(picture: File, question: string): Promise<void> {
  const engine = await getEngine({
    ...options,
    isolatedFrame: {},
    onProgress: ({ phase, loadedBytes }) => {
      state.textContent = `${phase}: ${loadedBytes} bytes`;
    },
  });
  state.textContent = "Looking…";
  const stream = await engine.chat.completions.create({
    model: "default",
    messages: [
      {
        role: "user",
        content: [
          { type: "image_url", image_url: picture },
          { type: "text", text: question },
        ],
      },
    ],
    max_tokens: 256,
    stream: true,
  });
  answer.textContent = "";
  for await (const { choices } of stream) answer.append(choices[0]?.delta.content ?? "");
}

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const picture = element<HTMLInputElement>("picture").files?.[0];
  if (picture === undefined) return;
  button.disabled = true;
  try {
    await ask(picture, element<HTMLInputElement>("question").value);
    state.textContent = "Done.";
  } catch (error) {
    state.textContent = String(error);
  }
  button.disabled = false;
});
