// The package's thread is a script of its own, which must not be bundled on the server.
export default { serverExternalPackages: ["inpage"] };
