import { type EnvPart, parseEnvTemplate, variablesIn } from "./env-template.ts";
import type { JsonPlace, JsonReader } from "./json-reader.ts";

/** Reads a text that may refer to the variables in `allowed`; whatever is wrong with it becomes a problem. */
export function readTemplate(
  reader: JsonReader,
  place: JsonPlace,
  what: string,
  allowed: ReadonlySet<string>,
): readonly EnvPart[] {
  try {
    const parts = parseEnvTemplate(reader.text(place, what) ?? "");
    for (const used of variablesIn(parts))
      if (!allowed.has(used)) reader.report(place, `${what}: "\${${used}}" is not in the plugin's env_allow`);
    return parts;
  } catch (error: unknown) {
    reader.report(place, `${what}: ${error instanceof Error ? error.message : String(error)}`);
    return [];
  }
}
