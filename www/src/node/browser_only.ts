//! Functions that only a page can use: outside of a browser they fail, and say what to use instead.

import { InpageError } from "../api/inpage_error.js";
import type * as page from "../exports.js";

const refusal = (what: string, remedy: string) =>
  InpageError.local("unsupported_browser", `${what} needs a browser: ${remedy}`);

export const serveFromPage: typeof page.serveFromPage = () => {
  throw refusal(
    "serveFromPage",
    "`npx inpage serve` answers over HTTP, engine.fetch in this program",
  );
};

export const servedFetch: typeof page.servedFetch = async () => {
  throw refusal("servedFetch", "use engine.fetch");
};
