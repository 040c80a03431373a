//! The cache key of a URL: what stays the same when a server signs the URL again. Secrets are never part of it.
//! Makes no requests and knows no storage.

/** Names of query parameters that carry a signature, in lower case. The lists are documented in docs/guide.md. */
const SIGNATURES = new Set([
  "sig",
  "signature",
  "token",
  "access_token",
  "auth_token",
  "sas",
  "hmac",
  "hdnea",
  "hdnts",
  "x-amz-signature",
  "x-goog-signature",
  "x-oss-signature",
  "q-signature",
]);

/** Names that belong to a signature where the URL has one, and may mean something else where it has none. */
const COMPANIONS = new Set([
  // Azure shared access signatures.
  ...["sv", "ss", "srt", "sr", "sp", "st", "se", "sip", "spr", "si", "sdd", "ses", "scid"],
  ...["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid"],
  ...["rscc", "rscd", "rsce", "rscl", "rsct"],
  // Amazon CloudFront and S3, Google and Alibaba storage, other CDNs.
  ...["expires", "expiry", "exp", "policy", "key-pair-id", "hash-algorithm", "keyname"],
  ...["awsaccesskeyid", "googleaccessid", "ossaccesskeyid", "security-token", "x-id"],
  ...["token_path", "token_ver"],
]);

/** Beginnings of such names. */
const PREFIXES = ["x-amz-", "x-goog-", "x-oss-", "x-cos-", "x-xet-", "q-", "response-"];

/**
 * `url` without its fragment, user name and password, and without the query parameters that are named by `ignored`
 * (in any case) or belong to a signature. All others stay as they are written, in their order.
 *
 * @throws TypeError if `url` is no absolute URL
 */
export function cacheKey(url: string, ignored: readonly string[] = []): string {
  const key = new URL(url);
  key.hash = "";
  key.username = "";
  key.password = "";
  const drop = new Set(ignored.map((name) => name.toLowerCase()));
  const pieces = key.search.slice(1).split("&").filter(Boolean);
  const names = pieces.map((piece) => nameOf(piece));
  const isSigned = names.some((name) => SIGNATURES.has(name));
  const isKept = (name: string) =>
    !drop.has(name) && !SIGNATURES.has(name) && !(isSigned && isCompanion(name));
  key.search = pieces.filter((_, index) => isKept(names[index] ?? "")).join("&");
  return key.href;
}

function isCompanion(name: string): boolean {
  return COMPANIONS.has(name) || PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** The decoded name of a query parameter, in lower case. */
function nameOf(piece: string): string {
  const name = piece.split("=", 1)[0] ?? "";
  try {
    return decodeURIComponent(name.replaceAll("+", " ")).toLowerCase();
  } catch {
    return name.toLowerCase();
  }
}
