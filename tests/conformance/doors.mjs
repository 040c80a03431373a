//! Names of the doors through which cases run.

export const ALL = ["native", "page", "sw"];
