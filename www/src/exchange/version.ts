//! The version of the package. Tabs with different versions, as after an update of a site, share no engine.

/** The version of the package, as in package.json. */
export const VERSION = "0.1.0";
