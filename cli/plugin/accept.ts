import { type Acceptance, acceptanceOf, acceptedText, readAccepted } from "../../lib/plugin/accepted.ts";
import { readPlugin } from "../../lib/plugin/plugin.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { writePrivateFile } from "../private-file.ts";
import type { JsonFlag } from "./check.ts";
import { pluginJson, pluginText, usable } from "./describe.ts";
import { acceptedFile, type StateDirFlag } from "./state-dir.ts";

/** The options of `reeve plugin accept`. */
export type AcceptFlags = JsonFlag & StateDirFlag;

/** `reeve plugin accept`: has this machine's device offer a plugin as it is now. */
export async function accept(folder: string, flags: AcceptFlags, context: CommandContext): Promise<void> {
  const json = flags.json === true;
  const plugin = usable(folder, await readPlugin(folder), json, context);
  if (plugin === undefined) return;
  const file = acceptedFile(flags, context);
  const before = await readAccepted(file);
  const { name } = plugin.manifest;
  const acceptance = acceptanceOf(plugin, context.now());
  await writePrivateFile(file, acceptedText(new Map([...before, [name, acceptance]])));
  const changes = changesOf(before.get(name), acceptance);
  if (json) return void context.stdout.write(jsonDocument({ ok: true, ...pluginJson(plugin), changes, file }));
  context.stdout.write(`${pluginText(plugin)}${changes.map((change) => `  ${visibleLine(change)}\n`).join("")}`);
  context.stderr.write(
    `reeve: accepted, in ${visibleLine(file)}; by the policy that is shipped its calls are denied\n`,
  );
}

/** What is not as it was when the plugin was accepted before; nothing where it never was. */
function changesOf(before: Acceptance | undefined, now: Acceptance): string[] {
  if (before === undefined) return [];
  if (before.digest === now.digest) return ["the same as it was accepted before"];
  const names = [...new Set([...before.tools.keys(), ...now.tools.keys()])].sort();
  const ofTools = names.flatMap((name) => {
    const [then, present] = [before.tools.get(name), now.tools.get(name)];
    if (then === present) return [];
    if (then === undefined) return [`new: ${name}`];
    return [present === undefined ? `gone: ${name}` : `changed: the input of ${name}`];
  });
  return ofTools.length > 0 ? ofTools : ["changed: its files, and no tool's input"];
}
