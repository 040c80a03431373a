//! `npm run soak`: measures 2,000 completions with random aborts. `npm run soak -- 500` measures 500. The checks are in
//! tests/browser/soak.test.mjs. The package must be built.

import { main, root, run } from "./process.mjs";

await main(async ([completions = "2000"]) =>
  run(process.execPath, ["--test", "tests/browser/soak.test.mjs"], {
    cwd: root,
    env: { INPAGE_SOAK_COMPLETIONS: completions },
  }),
);
