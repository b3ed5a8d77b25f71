import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseHosts } from "../../lib/hosts/host-list.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { SECRET_NAME } from "../../lib/secrets/handle.ts";
import { openSecrets, problemOf, SEALING_KEY_FILE, SECRETS_FOLDER, type SecretStore } from "../../lib/secrets/store.ts";
import type { CommandContext } from "../command-context.ts";
import { deviceStateDir, type StateDirFlag } from "../device-state-dir.ts";
import { UsageError } from "../errors/usage-error.ts";
import { jsonDocument } from "../print/json.ts";
import { askHidden, canAsk } from "../print/prompt.ts";
import { listTable } from "../print/table.ts";
import { readAll } from "../read-all.ts";

/** The options of `reeve secret list` and `delete`. */
export type SecretFlags = StateDirFlag & { json?: true };

/** The options of `reeve secret set`. */
export type SetFlags = StateDirFlag & { host: string[] };

/** More than any secret has, in bytes. */
const MAX_BYTES = 64 * 1024;

/** `reeve secret set`: keeps what is typed or read. */
export async function set(name: string, flags: SetFlags, context: CommandContext): Promise<void> {
  const hosts = flags.host.map(checkedHost);
  const store = await storeOf(name, flags, context);
  const value = (await typed(name, context)).replace(/\r?\n$/, "");
  const problem = value === "" ? "is empty" : problemOf(value);
  if (problem !== undefined) throw new UsageError(`the secret ${problem}`);
  await store.set(name, { value, hosts });
  context.stderr.write(`reeve: ${name} is kept, for ${hosts.join(", ")}; calls name it as \${secret:${name}}\n`);
}

/** `reeve secret list`: names and hosts. */
export async function list(flags: SecretFlags, context: CommandContext): Promise<void> {
  const secrets = await (await openStore(flags, context)).list();
  if (flags.json)
    return void context.stdout.write(
      jsonDocument({ secrets: secrets.map(({ name, hosts }) => ({ name, hosts: [...hosts] })) }),
    );
  if (secrets.length === 0) context.stderr.write("reeve: no secret is kept\n");
  const rows = secrets.map(({ name, hosts }) => [name, hosts.join(" ")]);
  context.stdout.write(listTable(["NAME", "HOSTS"], rows, context, { keep: ["NAME"], colors: {} }));
}

/** `reeve secret delete`: forgets one. */
export async function remove(name: string, flags: SecretFlags, context: CommandContext): Promise<void> {
  const store = await storeOf(name, flags, context);
  if (!(await store.delete(name)))
    throw new UsageError(`no secret is named ${name}`, ["`reeve secret list` lists them"]);
  context.stderr.write(`reeve: ${name} is forgotten\n`);
}

async function storeOf(name: string, flags: StateDirFlag, context: CommandContext): Promise<SecretStore> {
  if (!SECRET_NAME.test(name)) throw new UsageError(`"${name}" is not the name of a secret: letters, digits and _`);
  return openStore(flags, context);
}

async function openStore(flags: StateDirFlag, context: CommandContext): Promise<SecretStore> {
  const folder = deviceStateDir(flags, context);
  if (!existsSync(folder))
    throw new UsageError(`${folder} does not exist: this machine has no device yet`, ["start it once: `reeve up`"]);
  const sealer = sealerWith(await loadSealingKey(join(folder, SEALING_KEY_FILE)));
  return openSecrets(join(folder, SECRETS_FOLDER), sealer);
}

/** A single host: a secret for "any of these" soon goes to a host that its owner did not think of. */
function checkedHost(text: string): string {
  try {
    parseHosts([text]);
  } catch (cause: unknown) {
    throw new UsageError(cause instanceof Error ? cause.message : String(cause), [], { cause });
  }
  if (/[*/]|:\d+$/.test(text.replace(/^\[.*\]$/, "")))
    throw new UsageError(`${text}: a secret is for single hosts, without a port`);
  return text.toLowerCase();
}

async function typed(name: string, context: CommandContext): Promise<string> {
  if (canAsk(context)) return (await askHidden(context, `${name} (it is not shown): `)) ?? "";
  return readAll(context, MAX_BYTES, "a secret");
}
