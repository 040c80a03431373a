//! The module's URL, for bundlers that import such a file as its URL.

declare const url: string;
export default url;
