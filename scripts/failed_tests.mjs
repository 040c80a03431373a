//! Finds the tests that failed in the output of `node --test` (TAP), `cargo test` and `scripts/conformance.mjs`, so that the end of a run
//! names them. `test.mjs` counts tests itself.

/** Characters of a reason that are listed. The output above has all of it. */
const REASON_CHARACTERS = 300;

/** One line for each failed test in the order of the output: its name, where it is, and the start of the reason. */
export function failedTests(output) {
  const failures = [
    ...tapFailures(output),
    ...cargoFailures(output),
    ...conformanceFailures(output),
  ];
  return failures.map(({ name, place, reason = "" }) => {
    const start = reason.trim().replace(/\s+/g, " ").slice(0, REASON_CHARACTERS);
    return `${name}${place ? ` (${place})` : ""}${start ? `: ${start}` : ""}`;
  });
}

/**
 * `not ok 2 - NAME` and a block of YAML between `---` and `...`. Tests that only contain failed ones are not listed, nor those that are marked
 * as to do, whose failure is expected.
 */
function tapFailures(output) {
  const failures = [];
  for (const [, , title, block] of output.matchAll(
    /^( *)not ok \d+ - (.*)\n\1 {2}---\n((?:(?!\1 {2}\.\.\.$).*\n)*)/gm,
  )) {
    const field = (name) => block.match(new RegExp(`^ *${name}: '(.*)'$`, "m"))?.[1];
    const lines = block.match(/^( *)error: \|-\n((?:\1 {2}.*\n)*)/m)?.[2];
    if (/ # TODO\b/.test(title) || field("failureType") === "subtestsFailed") continue;
    const name = title.replaceAll("\\#", "#");
    failures.push({ name, place: field("location"), reason: lines ?? field("error") });
  }
  return failures;
}

/** `test NAME ... FAILED`, and `thread 'NAME' (ID) panicked at PLACE:` with the message below, up to an empty line, a note or a backtrace. */
function cargoFailures(output) {
  return [...output.matchAll(/^test (.*?)(?: - should panic)? \.\.\. FAILED$/gm)].map(
    ([, name]) => {
      const thread = `thread '${name.replaceAll(/[.()]/g, "\\$&")}'(?: \\(\\d+\\))?`;
      const panic = output.match(
        new RegExp(`^${thread} panicked at (.*):\\n((?:(?!note: |stack backtrace:).+\\n)*)`, "m"),
      );
      return { name, place: panic?.[1], reason: panic?.[2] };
    },
  );
}

/** `not ok ID TITLE (SECONDS s): REASON`. */
function conformanceFailures(output) {
  return [...output.matchAll(/^not ok (?!\d+ - )(.*) \(\d+\.\d s\): (.*)$/gm)].map(
    ([, name, reason]) => ({ name, reason }),
  );
}
