import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Argument, type Command, Option } from "commander";
import { AuthoritySchema } from "../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { KeyRole, KeySchema } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { listAuthorities } from "../key/authorities.ts";
import { keysTable } from "../key/key-lines.ts";
import { withJson } from "../list-options.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface ListFlags extends TargetFlags {
  role?: string;
  json?: true;
}

interface RotateFlags extends TargetFlags {
  overlap?: string;
  json?: true;
}

const AUTHORITY = "device-ca";
const ROLES = { grant: KeyRole.GRANT, checkpoint: KeyRole.CHECKPOINT };
const ROLE_NAMES = [...Object.keys(ROLES), AUTHORITY];

/** The longest overlap that policy takes, in milliseconds. */
const MAX_OVERLAP_MS = 30 * 86_400_000;

/** Registers `reeve key` with list and rotate. */
export function registerKey(program: Command, context: CommandContext): void {
  const key = program
    .command("key")
    .description("List and rotate the keys that sign grants, checkpoints and the certificates of devices.");
  withJson(withConnection(key.command("list").description("List the keys.")))
    .addOption(new Option("--role <role>", "only keys of this role").choices(ROLE_NAMES))
    .action((flags: ListFlags) => withSession(context, flags, (session) => list(session, flags, context)));
  withJson(withConnection(key.command("rotate").addArgument(new Argument("<role>", "which key").choices(ROLE_NAMES))))
    .description(
      "Make a new key that takes the old one's place. Grants: devices get it first, and it signs from half of the\n" +
        "overlap on. Checkpoints: both sign during the overlap. Certificates: it signs at once, and the old authority\n" +
        "stays trusted until its last certificate has ended.",
    )
    .option("--overlap <time>", "how long the old key stays trusted, from 1s to 30d; not for device-ca. Default 24h")
    .action((role: string, flags: RotateFlags) =>
      withOperator(context, flags, (session) =>
        role === AUTHORITY ? rotateAuthority(session, flags, context) : rotate(session, role, flags, context),
      ),
    );
}

async function list(session: Session, { role, json }: ListFlags, context: CommandContext): Promise<void> {
  const { keys } = role === AUTHORITY ? { keys: [] } : await session.keys.listKeys({ role: roleOf(role) });
  const isWanted = role === undefined || role === AUTHORITY;
  const found = isWanted ? await listAuthorities(session) : undefined;
  if (role === AUTHORITY && found === undefined) throw new UsageError("this registry enrolls no devices");
  const authorities = found ?? [];
  if (!json) {
    context.stdout.write(keysTable(keys, authorities, context));
    return;
  }
  const shown = authorities.map((authority) => wholeJson(AuthoritySchema, authority));
  context.stdout.write(jsonDocument({ keys: keys.map((key) => wholeJson(KeySchema, key)), authorities: shown }));
}

async function rotate(
  session: Session,
  role: string,
  { overlap, json }: RotateFlags,
  context: CommandContext,
): Promise<void> {
  const stated = overlap === undefined ? {} : { overlap: durationFromMs(overlapOf(overlap) * 1000) };
  const { key } = await session.keys.rotateKey({ role: roleOf(role), ...stated });
  if (key === undefined) return;
  if (json) context.stdout.write(jsonDocument(wholeJson(KeySchema, key)));
  else context.stdout.write(keysTable([key], [], context));
}

async function rotateAuthority(
  session: Session,
  { overlap, json }: RotateFlags,
  context: CommandContext,
): Promise<void> {
  if (overlap !== undefined) {
    throw new UsageError(
      "--overlap is not for device-ca: the old authority stays trusted until its last certificate has ended",
    );
  }
  const { authority } = await session.authorities.rotateAuthority({});
  if (authority === undefined) return;
  if (json) context.stdout.write(jsonDocument(wholeJson(AuthoritySchema, authority)));
  else context.stdout.write(keysTable([], [authority], context));
}

function overlapOf(text: string): number {
  const ms = parseDuration(text, "--overlap");
  if (ms >= 1000 && ms <= MAX_OVERLAP_MS) return Math.ceil(ms / 1000);
  throw new UsageError(`--overlap: ${text} is not from 1s to 30d`);
}

function roleOf(name: string | undefined): KeyRole {
  return name === undefined ? KeyRole.UNSPECIFIED : (ROLES[name as keyof typeof ROLES] ?? KeyRole.UNSPECIFIED);
}
