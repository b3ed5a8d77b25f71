import { chmod, mkdir, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { isServiceName } from "../../lib/toolschema/names.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";
import type { JsonFlag } from "./check.ts";

/** `reeve plugin new`: writes the files of a plugin that works, to be changed into another one. */
export async function makeNew(path: string, { json }: JsonFlag, context: CommandContext): Promise<void> {
  const folder = resolve(path);
  const name = basename(folder);
  if (!isServiceName(name))
    throw new UsageError(`"${name}" is no name of a plugin: a-z, 0-9 and -, a letter first, at most 32`);
  await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
    const why = error.code === "EEXIST" ? "exists already" : `cannot be made: ${error.code ?? error.message}`;
    throw new UsageError(`${folder} ${why}`, [], { cause: error });
  });
  await writeFile(join(folder, "plugin.json"), `${JSON.stringify(manifestOf(name), undefined, 2)}\n`);
  await writeFile(join(folder, "say.py"), SCRIPT);
  // Whatever the umask is: a device takes no program that other users may change.
  await chmod(join(folder, "say.py"), 0o755);
  await chmod(join(folder, "plugin.json"), 0o644);
  await chmod(folder, 0o755);
  if (json) return void context.stdout.write(jsonDocument({ name, folder }));
  const shown = visibleLine(path);
  context.stdout.write(
    `${visibleLine(folder)} has a tool, ${name}:say. Next:\n` +
      `  reeve plugin check ${shown}\n  reeve plugin accept ${shown}\n` +
      `  reeve up --plugins ${visibleLine(join(folder, ".."))} --policy-file FILE   with a rule that allows "${name}:say"\n`,
  );
}

function manifestOf(name: string) {
  return {
    name,
    description: "Says hello.",
    version: "0.1.0",
    tools: [
      {
        name: "say",
        description: "Say hello to a person by name.",
        input_schema: {
          type: "object",
          properties: { name: { type: "string", minLength: 1, maxLength: 100, description: "Whom to say it to." } },
          required: ["name"],
          additionalProperties: false,
        },
        command: "./say.py",
        timeout_seconds: 5,
        permission_class: "read_only",
        read_only: true,
        concurrency_safe: true,
      },
    ],
  };
}

const SCRIPT = `#!/usr/bin/env python3
import json
import sys

arguments = json.load(sys.stdin)
print(f"Hello, {arguments['name']}.")
`;
