//! The package's engine worker at a URL in this folder, so that it is in the scope of the demo's service worker on
//! every host and can be cached for offline use.

import "../dist/worker.js";
