//! The package's service worker, in the folder of the page, because a service worker controls only pages in or below its
//! own folder.

importScripts("../../www/dist/sw.js");
