//! The output lines of `npm run bench`: rates computed from raw times.

/** Limits: CPU time of replaying a decode step in Chromium, and dispatches per step. */
const MAX_REPLAY_US_PER_DISPATCH = 1.5;
const MAX_DISPATCHES_PER_LAYER = 8;

export const rounded = (value) => Math.round(value * 1000) / 1000;

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}

export function completionLine(samples) {
  const { usage } = samples[0];
  const { prompt_tokens, completion_tokens } = usage;
  const first_ms = median(samples.map((sample) => sample.first_ms));
  const decode_ms = median(samples.map((sample) => sample.decode_ms));
  const decoded = completion_tokens - 1;
  return {
    prompt_tokens,
    completion_tokens,
    first_token_ms: rounded(first_ms),
    prefill_tokens_per_s: rounded((prompt_tokens / first_ms) * 1000),
    decode_tokens_per_s: decoded > 0 ? rounded((decoded / decode_ms) * 1000) : null,
    decode_ms_per_token: decoded > 0 ? rounded(decode_ms / decoded) : null,
  };
}

/** A rate with three digits: on software adapters an image takes minutes. */
export const perSecond = (ms) => Number((1000 / ms).toPrecision(3));

/** The line of measurements with images, each in a prompt that is asked for one token. */
export function imageLine(samples) {
  const of = (field) => median(samples.map((sample) => sample[field]));
  const image_ms = of("image_ms");
  return {
    prompt_tokens: samples[0].prompt_tokens,
    first_token_ms: rounded(of("first_ms")),
    image_ms: rounded(image_ms),
    // An image that takes less than the noise has no rate.
    images_per_s: image_ms > 0 ? perSecond(image_ms) : null,
  };
}

/** The line of requests with `texts` texts, and of requests with one. */
export function embeddingsLine(samples, texts) {
  const of = (field) => median(samples.map((sample) => sample[field]));
  return { texts_per_s: perSecond(of("texts_ms") / texts), text_ms: rounded(of("text_ms")) };
}

/** The cosine of two vectors. */
export function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

export function replayLine({ roundMs, steps, dispatchesPerStep, layers }) {
  // The first round is slower: buffers grow during it.
  const perDispatch = roundMs.slice(1).map((ms) => (ms * 1000) / (steps * dispatchesPerStep));
  const us_per_dispatch = median(perDispatch);
  const dispatches_per_layer = dispatchesPerStep / layers;
  return {
    us_per_dispatch: rounded(us_per_dispatch),
    least_us_per_dispatch: rounded(Math.min(...perDispatch)),
    max_us_per_dispatch: MAX_REPLAY_US_PER_DISPATCH,
    dispatches_per_step: dispatchesPerStep,
    layers,
    dispatches_per_layer: rounded(dispatches_per_layer),
    max_dispatches_per_layer: MAX_DISPATCHES_PER_LAYER,
    within_limits:
      us_per_dispatch <= MAX_REPLAY_US_PER_DISPATCH &&
      dispatches_per_layer <= MAX_DISPATCHES_PER_LAYER,
  };
}

export function print(json, facts, name, values) {
  if (json) {
    process.stdout.write(`${JSON.stringify({ bench: "chromium", name, ...values, ...facts })}\n`);
    return;
  }
  const pairs = Object.entries(values).map(([key, value]) => `${key}=${value}`);
  process.stdout.write(`${name.padEnd(8)} ${pairs.join("  ")}\n`);
}
