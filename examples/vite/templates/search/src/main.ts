//! A search by meaning: texts in the order of the cosine of their vectors with that of the query. The texts stay in the page. `?model=` names
//! another model.

import { getEngine } from "inpage";

const model = new URLSearchParams(location.search).get("model") ?? "all-minilm-l6-v2";
const element = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const state = element("state");
const button = element<HTMLButtonElement>("search");

/** The product of vectors, which is their cosine if both have length one. */
const product = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * (b[i] ?? 0), 0);

async function search(query: string, texts: string[]): Promise<void> {
  const engine = await getEngine({
    model,
    isolatedFrame: {},
    onProgress: ({ phase, loadedBytes }) => {
      state.textContent = `${phase}: ${loadedBytes} bytes`;
    },
  });
  const { data } = await engine.embeddings.create({ model: "default", input: [query, ...texts] });
  const [ofQuery, ...ofTexts] = data.map(({ embedding }) => embedding);
  const scores = ofTexts.map((vector) => product(vector, ofQuery ?? []));
  const results = texts.map((text, i) => ({ text, score: scores[i] ?? 0 }));
  results.sort((a, b) => b.score - a.score);
  const items = results.map(({ text, score }) => {
    const item = document.createElement("li");
    item.textContent = `${score.toFixed(3)} ${text}`;
    return item;
  });
  element("results").replaceChildren(...items);
}

element("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const lines = element<HTMLTextAreaElement>("texts").value.split("\n");
  const texts = lines.filter((line) => line.trim() !== "");
  button.disabled = true;
  try {
    await search(element<HTMLInputElement>("query").value, texts);
    state.textContent = "Done.";
  } catch (error) {
    state.textContent = String(error);
  }
  button.disabled = false;
});
