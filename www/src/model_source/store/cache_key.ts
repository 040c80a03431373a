//! The parts of a URL that may be stored and shown: the cache key, which stays the same when a server signs the URL again, and the name in
//! messages. Secrets are part of neither. Makes no requests and knows no storage.
//!
//! A file is known by its key: its URL without secrets. Everything that differs between two requests for the same bytes
//! stays outside of the cache: signatures, headers and tokens (`requests.ts`), mirrors (`mirrors.ts`, which reads again
//! and compares what was read from a server that failed), pauses (`pause.ts`, which wraps `fetch` and the clock, so
//! that the download knows nothing of them).

/** The words of a parameter's name that say that it is a credential. The lists are documented in docs/guide.md. */
const CREDENTIAL_WORDS = new Set([
  ...["auth", "oauth", "authorization", "authentication", "sig", "sign", "sas", "hdnea", "hdnts"],
  ...["pwd", "pass", "cred", "creds", "otp", "ticket", "session", "cookie"],
]);

/** The words that such a name contains, in lower case and without its separators. */
const CREDENTIAL =
  /token(?!i[sz])|jwt|passw(?:or)?d|passphrase|secret|signature|credential|hmac|bearer|sess(?:ion)?id|(?:api|access|secret|private|shared|auth|app|account|client|user|master|service|functions|subscription|licen[cs]e)key/;

/** Beginnings of the names of the signatures of Amazon, Google, Alibaba, Tencent and Hugging Face. */
const CREDENTIAL_PREFIX = /^x-(?:amz|goog|oss|cos|xet)-/;

/** A parameter `key` with such a value names a file. Any other is a credential. */
const FILE_NAME = /\.(?:gguf|safetensors|json)$/i;

/** Names of parameters whose presence says that the URL is signed. */
const SIGNATURES = new Set([
  ...["sig", "signature", "token", "access_token", "auth_token", "sas", "hmac", "hdnea", "hdnts"],
  ...["x-amz-signature", "x-goog-signature", "x-oss-signature", "q-signature"],
]);

/** Names that belong to a signature where the URL has one, and may mean something else where it has none. */
const COMPANIONS = new Set([
  // Azure shared access signatures.
  ...["sv", "ss", "srt", "sr", "sp", "st", "se", "sip", "spr", "si", "sdd", "ses", "scid"],
  ...["skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid"],
  ...["rscc", "rscd", "rsce", "rscl", "rsct"],
  // Amazon CloudFront and S3, Google and Alibaba storage, other CDNs.
  ...["expires", "expiry", "exp", "policy", "key-pair-id", "hash-algorithm", "keyname"],
  ...["googleaccessid", "x-id"],
]);

/** Beginnings of such names. */
const COMPANION_PREFIXES = ["q-", "response-"];

/**
 * `url` without its fragment, user name and password, and without the query parameters that are named by `ignored`
 * (in any case), that are named as credentials are, or that belong to a signature. All others stay as they are written, in their
 * order. The same is done with a URL in a parameter, as in those of a proxy.
 *
 * @throws TypeError if `url` is no absolute URL
 */
export function cacheKey(url: string, ignored: readonly string[] = []): string {
  const key = bare(url);
  const drop = new Set(ignored.map((name) => name.toLowerCase()));
  const parameters = [...key.search.slice(1).matchAll(/([&;]?)([^&;]+)/g)].map(
    ([, separator = "", text = ""]) => ({ separator, ...parameter(text) }),
  );
  const isSigned = parameters.some(({ name }) => SIGNATURES.has(name.toLowerCase()));
  const kept = parameters.filter(({ name, value }) => {
    const lower = name.toLowerCase();
    return !drop.has(lower) && !isCredential(name, value) && !(isSigned && isCompanion(lower));
  });
  key.search = kept
    .map(({ separator, text, value }) => separator + withoutSecrets(text, value, ignored))
    .join("")
    .replace(/^[&;]/, "");
  return key.href;
}

/** `url` as messages name it: without user name, password, query and fragment. A string that is no URL loses what follows `?` or `#`. */
export function shownUrl(url: string | URL): string {
  const text = `${url}`;
  if (!URL.canParse(text)) return text.replace(/[?#].*$/s, "");
  const shown = bare(text);
  shown.search = "";
  return shown.href;
}

function bare(url: string): URL {
  const other = new URL(url);
  other.hash = "";
  other.username = "";
  other.password = "";
  return other;
}

interface Parameter {
  /** The URL as it is written. */
  text: string;
  /** Decoded; empty if the parameter is a URL without a name. */
  name: string;
  /** Decoded. */
  value: string;
}

function parameter(text: string): Parameter {
  const whole = decoded(text);
  if (/^https?:\/\//i.test(whole)) return { text, name: "", value: whole };
  const [name = "", ...value] = text.split("=");
  return { text, name: decoded(name), value: decoded(value.join("=")) };
}

function isCredential(name: string, value: string): boolean {
  const words = name.replace(/([a-z\d])([A-Z])/g, "$1-$2").toLowerCase();
  const compact = words.replace(/[^a-z\d]/g, "");
  if (compact === "key") return !FILE_NAME.test(value);
  return (
    CREDENTIAL.test(compact) ||
    CREDENTIAL_PREFIX.test(name.toLowerCase()) ||
    words.split(/[^a-z\d]+/).some((word) => CREDENTIAL_WORDS.has(word))
  );
}

function isCompanion(name: string): boolean {
  return COMPANIONS.has(name) || COMPANION_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** A parameter; if its value is a URL with secrets, without them. */
function withoutSecrets(text: string, value: string, ignored: readonly string[]): string {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return text;
  const inner = cacheKey(value, ignored);
  if (inner === new URL(value).href) return text;
  const [name] = /^[^=:]*=/.exec(text) ?? [""];
  return name + encodeURIComponent(inner);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
