//! The tokens of a completion, from the `logprobs` of its chunks: their strings, probabilities and alternatives.

/** White space that a table cannot show otherwise. */
export const visible = (text) =>
  text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replaceAll(" ", "␣");

const percent = (logprob) => {
  const value = 100 * Math.exp(logprob);
  if (value >= 99.95) return "100 %";
  return value < 0.05 ? "< 0.1 %" : `${value.toFixed(1)} %`;
};

/**
 * The tokens of one chunk: `{ text, logprob, probability, percent, alternatives }`. Tokens whose bytes are no whole characters have the form
 * `bytes:\xe2\x80`; the endpoint's `text` has their characters.
 */
export function tokensOf({ tokens = [], token_logprobs = [], top_logprobs = [] } = {}) {
  return tokens.map((text, index) => {
    const logprob = token_logprobs[index] ?? -9999;
    const others = Object.entries(top_logprobs?.[index] ?? {})
      .sort(([, one], [, other]) => other - one)
      .map(([other, value]) => ({
        text: other,
        probability: Math.exp(value),
        percent: percent(value),
        isChosen: other === text,
      }));
    return {
      text,
      logprob,
      probability: Math.exp(logprob),
      percent: percent(logprob),
      alternatives: others,
    };
  });
}

/** A colour for a probability: from red over yellow to green, as a hue. */
export const hueOf = (probability) => Math.round(130 * Math.sqrt(probability));
