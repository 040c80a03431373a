//! The inputs and outputs that a page expects of a model: their types and languages.

/** The types of contents of the Prompt API. */
const TYPES = ["text", "image", "audio", "tool-call", "tool-response"] as const;

export type ContentType = (typeof TYPES)[number];

/** A type of inputs or outputs, with languages as BCP 47 tags. Every language is accepted: the model's files do not name theirs. */
export interface Expected {
  type: ContentType;
  languages?: readonly string[];
}

/** The inputs and outputs that a page expects. */
export interface Expectations {
  expectedInputs?: readonly Expected[];
  expectedOutputs?: readonly Expected[];
}

/** The type of a content. @throws TypeError if there is none of this name */
export function contentType(name: unknown): ContentType {
  const type = TYPES.find((known) => known === name);
  if (type === undefined) throw new TypeError(`type: ${name} is none of ${TYPES.join(", ")}`);
  return type;
}

/**
 * Whether images are expected.
 *
 * @throws TypeError for a type that does not exist, and RangeError for a language that is no BCP 47 tag
 */
export function checkExpected({
  expectedInputs = [],
  expectedOutputs = [],
}: Expectations): boolean {
  for (const { type, languages = [] } of [...expectedInputs, ...expectedOutputs]) {
    contentType(type);
    Intl.getCanonicalLocales([...languages]);
  }
  return expectedInputs.some(({ type }) => type === "image");
}

/** Whether a session takes and gives what is expected; `sees`: whether its model sees images. Calls of tools are run in the session. */
export function isTaken(
  { expectedInputs = [], expectedOutputs = [] }: Expectations,
  sees: boolean,
) {
  const outputs: readonly ContentType[] = ["text", "tool-call"];
  const inputs: readonly ContentType[] = [
    ...outputs,
    "tool-response",
    ...(sees ? ["image" as const] : []),
  ];
  return (
    expectedInputs.every(({ type }) => inputs.includes(type)) &&
    expectedOutputs.every(({ type }) => outputs.includes(type))
  );
}
