//! The sampling modes of the Prompt API as fields of a request. The numbers are Chromium's, except that the most predictable mode
//! is greedy.

/** How varied answers are. */
export type SamplingMode = keyof typeof MODES;

const MODES = {
  "most-predictable": { temperature: 0, topK: 1 },
  predictable: { temperature: 0.2, topK: 2 },
  balanced: { temperature: 1, topK: 3 },
  creative: { temperature: 1.1, topK: 10 },
  "most-creative": { temperature: 1.2, topK: 25 },
};

/** The settings of a mode. @throws TypeError if there is no such mode */
export function settingsOf(mode: SamplingMode): { temperature: number; topK: number } {
  if (!Object.hasOwn(MODES, mode)) {
    throw new TypeError(`samplingMode: ${mode} is none of ${Object.keys(MODES).join(", ")}`);
  }
  return MODES[mode];
}
