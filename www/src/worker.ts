//! The engine worker's script: one file after the build, which needs nothing but the wasm modules in the folder `wasm` beside it.

import "./worker/run.js";
