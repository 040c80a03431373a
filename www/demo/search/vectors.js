//! Vectors of passages, from the embedding model, each requested once. No elements of the page.

/** @import { Engine } from "../../dist/index.js" */

/** Inputs of a request: enough to keep the device busy, and few enough to show progress and to stop soon. */
const BATCH = 8;

/** The vectors of texts, of one model. */
export class Vectors {
  /** @type {Map<string, Float32Array>} */
  #byText = new Map();
  #engine;

  /** @param {Engine} engine with a model for embeddings */
  constructor(engine) {
    this.#engine = engine;
  }

  /**
   * Requests the vectors of the texts that have none yet.
   *
   * @param {string[]} texts
   * @param {AbortSignal} signal
   * @param {(done: number, all: number) => void} [onProgress]
   * @throws whatever the engine throws; what was requested before is kept
   */
  async add(texts, signal, onProgress = () => {}) {
    const missing = [...new Set(texts)].filter((text) => !this.#byText.has(text));
    for (let at = 0; at < missing.length; at += BATCH) {
      onProgress(at, missing.length);
      const input = missing.slice(at, at + BATCH);
      const body = { model: "default", input };
      const { data } = await this.#engine.embeddings.create(body, { signal });
      for (const { index, embedding } of data) {
        const text = input[index];
        if (text === undefined || typeof embedding === "string") continue;
        this.#byText.set(text, unit(Float32Array.from(embedding)));
      }
    }
  }

  /**
   * The cosine of the angle between two texts whose vectors were added: 1 for the same direction.
   *
   * @param {string} a
   * @param {string} b
   */
  similarity(a, b) {
    const [x, y] = [this.#byText.get(a), this.#byText.get(b)];
    if (x === undefined || y === undefined) return 0;
    return x.reduce((sum, value, index) => sum + value * (y[index] ?? 0), 0);
  }
}

/** @param {Float32Array} vector */
function unit(vector) {
  const length = Math.hypot(...vector);
  return length > 0 ? vector.map((value) => value / length) : vector;
}
