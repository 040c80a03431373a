//! The service worker for sites to host: one file after the build. Its URL says what to intercept
//! (`sw.js?base=/v1&origin=https://api.example`), so that survives every restart.

import { intercept } from "./service_worker/intercept.js";

const query = new URL(self.location.href).searchParams;
const listOf = (name: string) => (query.has(name) ? query.getAll(name) : undefined);

intercept({ basePaths: listOf("base"), origins: listOf("origin") });
