import { type Acceptance, acceptanceOf, acceptedText, readAccepted } from "../../lib/plugin/accepted.ts";
import { type Found, readFound, serverTools } from "../../lib/plugin/found-tools.ts";
import { type Plugin, readPlugin } from "../../lib/plugin/plugin.ts";
import type { ServerTool } from "../../lib/plugin/server-tools.ts";
import type { CommandContext } from "../command-context.ts";
import type { StateDirFlag } from "../device-state-dir.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import { writePrivateFile } from "../private-file.ts";
import type { JsonFlag } from "./check.ts";
import { pluginJson, pluginText, usable } from "./describe.ts";
import { serverToolsJson, serverToolsText } from "./describe-servers.ts";
import { pluginFiles } from "./state-dir.ts";

/** The options of `reeve plugin accept`. */
export type AcceptFlags = JsonFlag & StateDirFlag;

/** `reeve plugin accept`: has this machine's device offer a plugin as it is now. */
export async function accept(folder: string, flags: AcceptFlags, context: CommandContext): Promise<void> {
  const json = flags.json === true;
  const plugin = usable(folder, await readPlugin(folder), json, context);
  if (plugin === undefined) return;
  const { accepted: file, found: foundFile } = pluginFiles(flags, context);
  const before = await readAccepted(file);
  const { name, servers } = plugin.manifest;
  const listed = listedTools(plugin, await readFound(foundFile));
  const acceptance = acceptanceOf(plugin, context.now(), listed);
  await writePrivateFile(file, acceptedText(new Map([...before, [name, acceptance]])));
  const changes = changesOf(before.get(name), acceptance);
  if (json) {
    const serverTools = serverToolsJson(name, listed);
    return void context.stdout.write(jsonDocument({ ok: true, ...pluginJson(plugin), serverTools, changes, file }));
  }
  const changesText = changes.map((change) => `  ${visibleLine(change)}\n`).join("");
  context.stdout.write(`${pluginText(plugin)}${serverToolsText(name, listed)}${changesText}`);
  context.stderr.write(
    `reeve: accepted, in ${visibleLine(file)}; by the policy that is shipped its calls are denied\n`,
  );
  const silent = servers.filter((server) => !listed.some((tool) => tool.server === server)).map((one) => one.name);
  if (silent.length > 0)
    context.stderr.write(
      `reeve: a device that runs asks ${silent.join(", ")} for tools now; \`reeve plugin list\` shows them within seconds, and ` +
        "once you have read what they say they do, accept the plugin again\n",
    );
}

/** What the plugin's servers listed for a device, when they were run as the plugin is now. */
function listedTools({ manifest, digest }: Plugin, found: Found): readonly ServerTool[] {
  const before = found.get(manifest.name);
  return before?.digest === digest ? serverTools(manifest, before.servers).tools : [];
}

/** What is not as it was when the plugin was accepted before; nothing where it never was. */
function changesOf(before: Acceptance | undefined, now: Acceptance): string[] {
  if (before === undefined) return [];
  const names = [...new Set([...before.tools.keys(), ...now.tools.keys()])].sort();
  const ofTools = names.flatMap((name) => {
    const [then, present] = [before.tools.get(name), now.tools.get(name)];
    if (then === present) return [];
    if (then === undefined) return [`new: ${name}`];
    return [present === undefined ? `gone: ${name}` : `changed: what ${name} takes or says of itself`];
  });
  if (ofTools.length > 0) return ofTools;
  return [
    before.digest === now.digest ? "the same as it was accepted before" : "changed: its files, and no tool's input",
  ];
}
