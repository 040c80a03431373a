//! `npm run soak`: 2,000 completions with random aborts, measured (`npm run soak -- 500`: so many). What is checked is in
//! tests/browser/soak.test.mjs. The package must be built.

import { main, root, run } from "./process.mjs";

await main(async ([completions = "2000"]) =>
  run(process.execPath, ["--test", "tests/browser/soak.test.mjs"], {
    cwd: root,
    env: { INPAGE_SOAK_COMPLETIONS: completions },
  }),
);
