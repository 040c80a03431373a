//! The policy `inpage` of Trusted Types: pages that require them take URLs of scripts from policies only.

interface ScriptPolicy {
  createScriptURL(url: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: ScriptPolicy): ScriptPolicy;
}

let policy: ScriptPolicy | undefined;

/**
 * `url` in the form that the page requires. Only URLs that the app or the package names come here. Where the page does not
 * allow the policy, `url` itself, which the browser then refuses.
 */
export function trustedScriptUrl(url: string): string {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes };
  try {
    // A second policy of the same name may be forbidden.
    policy ??= trustedTypes?.createPolicy("inpage", { createScriptURL: (it) => it });
  } catch {
    return url;
  }
  return policy?.createScriptURL(url) ?? url;
}
