//! `inpage/vite`: a plugin for Vite that does what a site with the package needs. Vite's own types are not imported, so that one plugin fits
//! several of its versions.

import { existsSync, readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";

/** The tasks of the plugin; all if omitted. */
export interface InpagePluginOptions {
  /**
   * Send the headers that make pages cross-origin isolated, from the development server and the preview: the CPU device has threads
   * there. A site's own server must send them itself.
   */
  isolated?: boolean;
  /** The name of the service worker at the root of the site; false: there is none. A file of that name in the public folder is left alone. */
  serviceWorker?: string | false;
}

/** The parts of a resolved configuration that the plugin reads. */
interface ResolvedConfig {
  base: string;
  publicDir: string;
}

/** The part of Vite's development server and of its preview that the plugin uses. */
interface ViteServer {
  middlewares: {
    use(
      handle: (request: IncomingMessage, response: ServerResponse, next: () => void) => void,
    ): unknown;
  };
}

/** The part of the build that the plugin uses to write a file. */
interface BuildContext {
  emitFile(file: { type: "asset"; fileName: string; source: string }): string;
}

/** A plugin of Vite. */
export interface InpagePlugin {
  name: string;
  config(): { optimizeDeps: { exclude: string[] } };
  configResolved(config: ResolvedConfig): void;
  configureServer(server: ViteServer): void;
  configurePreviewServer(server: ViteServer): void;
  generateBundle(this: BuildContext): void;
}

const ISOLATING = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};
const SERVICE_WORKER = new URL("../sw.js", import.meta.url);
/** The last line of a script names its source map, which is not copied. */
const SOURCE_MAP = /\n\/\/# sourceMappingURL=.*\s*$/;

/** The plugin: `plugins: [inpage()]`. */
export default function inpage({
  isolated = true,
  serviceWorker = "sw.js",
}: InpagePluginOptions = {}): InpagePlugin {
  let site: ResolvedConfig = { base: "/", publicDir: "" };
  const name = serviceWorker === false ? undefined : serviceWorker.replace(/^\//, "");
  /** The script; undefined if the site has its own. */
  const script = () =>
    name === undefined || (site.publicDir !== "" && existsSync(join(site.publicDir, name)))
      ? undefined
      : readFileSync(SERVICE_WORKER, "utf8").replace(SOURCE_MAP, "\n");
  // Vite's option `server.headers` does not reach the pages that frameworks such as SvelteKit and Astro render.
  const isolate = ({ middlewares }: ViteServer) => {
    if (!isolated) return;
    middlewares.use((_, response, next) => {
      for (const [name, value] of Object.entries(ISOLATING)) response.setHeader(name, value);
      next();
    });
  };
  return {
    name: "inpage",
    config: () => ({
      // Its worker and wasm modules are files beside the scripts, which pre-bundling would move.
      optimizeDeps: { exclude: ["inpage"] },
    }),
    configResolved(config) {
      site = config;
    },
    configurePreviewServer: isolate,
    configureServer(server) {
      isolate(server);
      server.middlewares.use((request, response, next) => {
        const path = request.url?.replace(/\?.*/, "");
        const source = path === `${site.base}${name}` ? script() : undefined;
        if (source === undefined) return next();
        response.writeHead(200, { "content-type": "text/javascript", "cache-control": "no-cache" });
        response.end(source);
      });
    },
    generateBundle() {
      const source = script();
      if (name !== undefined && source !== undefined) {
        this.emitFile({ type: "asset", fileName: name, source });
      }
    },
  };
}
