//! The sampling modes of the Prompt API as fields of a request. The numbers of most are Chromium's; the most predictable mode is
//! greedy, the balanced one is what the model's makers recommend, and the slight ones are between their neighbors.

/** A mode of sampling: the variety of answers. */
export type SamplingMode = keyof typeof MODES;

/** The settings of a request. */
export interface Sampling {
  temperature?: number | undefined;
  topK?: number | undefined;
}

const MODES = {
  "most-predictable": { temperature: 0, topK: 1 },
  predictable: { temperature: 0.2, topK: 2 },
  "slightly-predictable": { temperature: 0.6, topK: 3 },
  balanced: {},
  "slightly-creative": { temperature: 1.05, topK: 5 },
  creative: { temperature: 1.1, topK: 10 },
  "most-creative": { temperature: 1.2, topK: 25 },
} satisfies Record<string, Sampling>;

/** The settings of a mode. */
export const settingsOf = (mode: SamplingMode): Sampling => MODES[mode];

/**
 * The mode of options: `balanced` if they say nothing, and null if they have settings of their own.
 *
 * @throws TypeError if there is no such mode, or if settings are given beside it
 */
export function modeOf({ samplingMode, temperature, topK }: ModeOptions): SamplingMode | null {
  const isOwn = temperature !== undefined || topK !== undefined;
  if (samplingMode === undefined) return isOwn ? null : "balanced";
  if (!Object.hasOwn(MODES, samplingMode)) {
    throw new TypeError(
      `samplingMode: ${samplingMode} is none of ${Object.keys(MODES).join(", ")}`,
    );
  }
  if (isOwn) throw new TypeError("samplingMode excludes temperature and topK");
  return samplingMode;
}

type ModeOptions = Sampling & { samplingMode?: SamplingMode | undefined };
