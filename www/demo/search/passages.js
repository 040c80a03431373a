//! Splits text into passages that are short enough to be found and read.

/** About two or three sentences. */
const PASSAGE_CHARS = 360;

/**
 * A part of a text.
 *
 * @typedef {{ source: string, text: string }} Passage
 */

/**
 * The passages of a text: paragraphs, joined while they are short and split at the ends of sentences while they are long.
 *
 * @param {string} source where the text comes from
 * @param {string} text
 * @returns {Passage[]}
 */
export function passagesOf(source, text) {
  /** @type {string[]} */
  const passages = [];
  let current = "";
  const end = () => {
    if (current.trim() !== "") passages.push(current.trim());
    current = "";
  };
  for (const paragraph of text.split(/\n\s*\n/)) {
    for (const sentence of sentencesOf(paragraph.replace(/\s+/g, " ").trim())) {
      if (current.length + sentence.length > PASSAGE_CHARS) end();
      current += sentence;
    }
    end();
  }
  return passages.map((it) => ({ source, text: it }));
}

/**
 * Sentences with the space after them; a sentence without an end is cut between words.
 *
 * @param {string} paragraph
 * @returns {string[]}
 */
function sentencesOf(paragraph) {
  const sentences = paragraph.match(/[^.!?。！？]+[.!?。！？]*["”’)\]]*\s*/gu) ?? [];
  return sentences.flatMap((sentence) => {
    const parts = [];
    let rest = sentence;
    while (rest.length > PASSAGE_CHARS) {
      const space = rest.lastIndexOf(" ", PASSAGE_CHARS);
      const at = space > 0 ? space + 1 : PASSAGE_CHARS;
      parts.push(rest.slice(0, at));
      rest = rest.slice(at);
    }
    return [...parts, rest];
  });
}
