import type { ProgramDeclaration } from "../../lib/plugin/program-declaration.ts";

/** What a program is started as. */
export function commandLine({ command, args, workDir }: ProgramDeclaration): string {
  const words = [command.path, ...args].map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word)));
  return `${words.join(" ")}${workDir === "." ? "" : `   in ${workDir}`}`;
}

/** How far it is kept apart. */
export function levelText({ permissionClass, network }: ProgramDeclaration): string {
  if (permissionClass === "host") return "host: no sandbox, it can do what you can";
  return network ? `${permissionClass} with the network` : permissionClass;
}
