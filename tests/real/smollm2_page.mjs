//! SmolLM2-135M-Instruct in a page of the harness.

/** The path at which the harness serves the model. */
export const MODEL_URL = "/smollm2.gguf";

/** A page with the model on this device: its `engine`, and `openai`, a client of it. */
export async function openSmolLm2(harness, device) {
  const page = await harness.open();
  await page.evaluate(
    async ([device, url]) => {
      const [model, load] = [{ url, id: "smollm2" }, { contextTokens: 1024 }];
      window.engine = await inpage.createEngine({ model, device, load });
      window.openai = client({ fetch: engine.fetch });
    },
    [device, MODEL_URL],
  );
  return page;
}
