//! `npm run soak`: measures 2,000 completions with random aborts. `npm run soak -- 500 cpu` measures 500 on the CPU device. The checks are
//! in tests/browser/soak.test.mjs. The package must be built.

import { main, root, run } from "./process.mjs";

await main(async ([completions = "2000", device = "webgpu"]) =>
  run(process.execPath, ["--test", "tests/browser/soak.test.mjs"], {
    cwd: root,
    env: { INPAGE_SOAK_COMPLETIONS: completions, INPAGE_SOAK_DEVICE: device },
  }),
);
