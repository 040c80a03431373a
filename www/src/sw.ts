//! The service worker for sites to host: one file after the build. The query of its URL says what to intercept
//! (`sw.js?base=/v1&origin=https://api.example`), so that survives every restart.

import { intercept } from "./service_worker/intercept.js";

intercept();
