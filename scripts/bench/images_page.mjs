//! The function that `npm run bench -- --projector` runs inside the page. It is sent there as text, so it is self-contained, and
//! returns raw times in ms.

/** The side of the images in pixels. */
export const IMAGE_SIDE = 512;

/**
 * Runs in the page. Resolves with raw times in ms, or `{ error }`.
 *
 * The rows of an image are kept by its content. So a second prompt that has nothing in common with the first one but the
 * image costs the same, except for encoding it.
 */
export async function measureImagesInPage({ url, projectorUrl, device, threads, side, rounds }) {
  let engine;
  try {
    const { createEngine } = await import("/dist/index.js");
    const newImage = () => {
      const canvas = new OffscreenCanvas(side, side);
      const context = canvas.getContext("2d");
      const [columns, byte] = [8, () => Math.floor(Math.random() * 256)];
      for (let i = 0; i < columns * columns; i++) {
        context.fillStyle = `rgb(${byte()} ${byte()} ${byte()})`;
        const [x, y] = [i % columns, Math.floor(i / columns)].map((n) => (n * side) / columns);
        context.fillRect(x, y, side / columns, side / columns);
      }
      return canvas.convertToBlob();
    };
    const start = performance.now();
    const projector = { url: projectorUrl };
    engine = await createEngine({ device, threads, model: { url }, projector });
    const load_ms = performance.now() - start;
    let asked = 0;
    const firstToken = async (image) => {
      // The prompts differ from the start, so that the prefix cache does not help, and have the same length.
      asked += 1;
      const prompt = `${String(100_000 + asked)
        .split("")
        .reverse()
        .join("")}<image>What is in this picture?`;
      const images = [image];
      const start = performance.now();
      const body = { model: "default", prompt, images, max_tokens: 1, temperature: 0 };
      const { usage } = await engine.completions.create(body);
      return { ms: performance.now() - start, prompt_tokens: usage.prompt_tokens };
    };
    const measure = async () => {
      const image = await newImage();
      const whole = await firstToken(image);
      const known = await firstToken(image);
      return {
        prompt_tokens: whole.prompt_tokens,
        first_ms: whole.ms,
        image_ms: whole.ms - known.ms,
      };
    };
    const cold = await measure();
    const samples = [];
    for (let i = 0; i < rounds; i++) samples.push(await measure());
    return { load_ms, cold, samples, info: await engine.info() };
  } catch (error) {
    return { error: error?.message ?? String(error) };
  } finally {
    await engine?.dispose();
  }
}
