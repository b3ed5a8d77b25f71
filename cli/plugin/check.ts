import { readPlugin } from "../../lib/plugin/plugin.ts";
import type { CommandContext } from "../command-context.ts";
import { jsonDocument } from "../print/json.ts";
import { pluginJson, pluginText, usable } from "./describe.ts";

export interface JsonFlag {
  json?: true;
}

/** `reeve plugin check`: reads a plugin as a device does, and prints what it is or what is wrong with it. */
export async function check(folder: string, { json }: JsonFlag, context: CommandContext): Promise<void> {
  const plugin = usable(folder, await readPlugin(folder), json === true, context);
  if (plugin === undefined) return;
  context.stdout.write(json ? jsonDocument({ ok: true, ...pluginJson(plugin) }) : pluginText(plugin));
}
