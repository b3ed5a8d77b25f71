import { isSecret } from "./secret-paths.ts";

/** Keys, certificates and the like, beside those that no tool of Reeve reads. */
const SECRET_NAME =
  /\.(?:pem|key|p8|asc|gpg|kdb|ovpn)$|^(?:credentials|secrets?|passwords?|tokens?|\.htpasswd|\.netrc|\.pgpass|vault-token|kubeconfig|admin\.conf|wp-config\.php|shadow~|opasswd)(?:\.(?:json|ya?ml|toml|ini|txt|xml|env|cfg|conf|bak))?$|^\.(?:env|secrets?)\b(?!\.(?:example|sample|template|dist|defaults)$)|_(?:rsa|dsa|ecdsa|ed25519)$/i;

/**
 * True for a path that is not read without a person being asked: all that may hold secrets (isSecret), and names that stand for
 * keys, certificates, tokens and settings with passwords in them, which a tool that was approved may need. By its names.
 */
export function asksToRead(names: readonly string[]): boolean {
  const last = names.at(-1) ?? "";
  if (SECRET_NAME.test(last) || isSecret(names)) return true;
  if (names[0] === "proc" && /^(?:maps|smaps|stack|syscall|kallsyms)$/.test(last)) return true;
  return names.some(
    (name, at) =>
      name === "sudoers.d" ||
      (name === ".git" && last === "config") ||
      (/^(?:ssh|sudoers)$/.test(name) && names[at - 1] === "etc" && /_key$/.test(last)),
  );
}
