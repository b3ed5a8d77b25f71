/**
 * Where to dial, from a comma-separated list; nothing for an empty one. Throws with the variable's name where an entry is
 * no https address: the registry knows a device by its certificate, which is shown over TLS only.
 */
export function parseRegistryUrls(text: string, variable: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry) => {
      const url = URL.parse(entry);
      if (url?.protocol === "https:") return url.href.replace(/\/$/, "");
      throw new Error(`${variable} must list https addresses, such as https://reeve.example:7400, not "${entry}"`);
    });
}
