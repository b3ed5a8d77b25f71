/** A secret's name, as it stands in a handle and in the store. */
export const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;

/** Where a secret goes in a text: "${secret:NAME}". */
const HANDLE = /\$\{secret:([^}]*)\}/g;

/** The names in a text's handles, in order, also those that are no names. Pure. */
export function secretsIn(text: string): string[] {
  return [...text.matchAll(HANDLE)].map(([, name = ""]) => name);
}

/** A text with each handle replaced. What a secret holds is not looked at for handles again. Pure. */
export function withSecrets(text: string, find: (name: string) => string): string {
  return text.replace(HANDLE, (_, name: string) => find(name));
}
