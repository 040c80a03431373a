import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";

// The package's service worker is copied to the root of the site, because it controls only pages in or below its folder.
const serviceWorker = createRequire(import.meta.url).resolve("inpage/sw.js");
mkdirSync(new URL("public", import.meta.url), { recursive: true });
copyFileSync(serviceWorker, new URL("public/sw.js", import.meta.url));

// A page with these headers is cross-origin isolated: the CPU device has several threads there. Your site's server needs them, too.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default {
  server: { headers },
  preview: { headers },
  // The dev server must not bundle the package: its worker and wasm module are separate files.
  optimizeDeps: { exclude: ["inpage"] },
  build: { target: "es2022" },
};
