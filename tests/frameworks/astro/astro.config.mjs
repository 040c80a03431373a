import { defineConfig } from "astro/config";
import inpage from "inpage/vite";

// `astro preview` does not run plugins of Vite.
const headers = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

export default defineConfig({ server: { headers }, vite: { plugins: [inpage()] } });
