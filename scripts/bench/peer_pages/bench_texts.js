// Texts for measurements of embeddings, the same for every runtime. The harness serves this file to its pages.

const WORDS =
  "the old bridge over the river was closed after the storm because two of its stones had moved and nobody knew how long repairs would take";

/** `count` texts of 24 words in another order each, about 27 tokens; `round` makes those of each measurement new. */
export function benchTexts(count, round) {
  const words = WORDS.split(" ");
  return Array.from({ length: count }, (_, i) => {
    const shift = (7 * i + 3 * round) % words.length;
    return [...words.slice(shift), ...words.slice(0, shift)].join(" ");
  });
}
