//! The service worker to host as it is: one file after the build. What to intercept stands in its
//! own URL (`sw.js?base=/v1&origin=https://api.example`), so it survives every restart.

import { intercept } from "./service_worker/intercept.js";

const query = new URL(self.location.href).searchParams;
const listOf = (name: string) => (query.has(name) ? query.getAll(name) : undefined);

intercept({ basePaths: listOf("base"), origins: listOf("origin") });
