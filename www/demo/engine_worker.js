//! The package's engine worker under a URL of this folder: so it is in the scope of the demo's
//! service worker, whatever the host, and can be kept for a visit without a network.

import "../dist/worker.js";
