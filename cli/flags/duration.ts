import { parseKey } from "../../lib/config/config-key.ts";
import { UsageError } from "../errors/usage-error.ts";

/** A length of time in milliseconds, written as in the configuration: "500ms", "30s", "5m", "2h", "7d". Throws a UsageError. */
export function parseDuration(text: string, name: string): number {
  const value = parseKey({ type: "duration", name, doc: "", min: 0 }, text);
  if (typeof value === "number") return value;
  throw new UsageError(`${name}: ${JSON.stringify(text)} is no duration such as 30s, 5m or 2h`);
}
