import { createHash } from "node:crypto";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { invalidField } from "../fault/invalid-input.ts";

/** What every provider takes as a tool's name. Anthropic's rule; OpenAI's is the same with at most 64 characters. */
export const PROVIDER_NAME = /^[a-zA-Z0-9_-]{1,128}$/;

/** A one-to-one map between tools' own names and the names that a provider takes. */
export interface NameMap {
  /** The provider's name of a tool. Throws UNKNOWN_TOOL for a tool that is not in the map. */
  toProvider(tool: string): string;
  /** The tool that a provider's name stands for; undefined where a model made the name up. */
  toTool(name: string): string | undefined;
}

/**
 * The name that a tool gets with a provider: "fs.read" is "fs_read", "service:tool" is "service__tool", and any other
 * character that providers refuse is "_". Several tools may get the same name: `createNameMap` refuses such a set.
 */
export function providerName(tool: string): string {
  return tool.replaceAll(":", "__").replace(/[^a-zA-Z0-9_-]/gu, "_");
}

/**
 * Maps a set of tools. Reversible because it is a table: nothing is guessed back from a name.
 *
 * Throws INVALID_INPUT naming the tools where two of them would get one name, where one is listed twice, or where a
 * name is empty or longer than 128 characters after mapping: a model could not distinguish them.
 *
 * @param maxLength the longest name that the provider takes. Longer ones end in a digest in place of what is cut off.
 */
export function createNameMap(tools: readonly string[], maxLength = 128): NameMap {
  const toTool = new Map<string, string>();
  for (const tool of tools) {
    const full = providerName(tool);
    if (!PROVIDER_NAME.test(full)) throw refused(`tool ${JSON.stringify(tool)} has no name of 1 to 128 characters`);
    const name = shortenName(full, tool, maxLength);
    const other = toTool.get(name);
    if (other === tool) throw refused(`tool ${JSON.stringify(tool)} is listed twice`);
    if (other !== undefined) {
      throw refused(
        `tools ${JSON.stringify(other)} and ${JSON.stringify(tool)} would both be called ${JSON.stringify(name)}: ` +
          "leave one out or rename it",
      );
    }
    toTool.set(name, tool);
  }
  const toProvider = new Map([...toTool].map(([name, tool]) => [tool, name]));
  return {
    toProvider(tool) {
      const name = toProvider.get(tool);
      if (name === undefined) throw fault(ErrorReason.UNKNOWN_TOOL, { tool });
      return name;
    },
    toTool: (name) => toTool.get(name),
  };
}

function shortenName(name: string, tool: string, maxLength: number): string {
  if (name.length <= maxLength) return name;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, 12);
  return `${name.slice(0, maxLength - digest.length - 1)}_${digest}`;
}

function refused(message: string): Error {
  return invalidField("tools", "provider_name", message, { text: message });
}
