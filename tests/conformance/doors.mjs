//! Names of the doors that cases can be asked through.

export const ALL = ["native", "page", "sw"];
