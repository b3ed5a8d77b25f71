import { type Command, Option } from "commander";
import {
  type Enrollment,
  EnrollmentSchema,
  EnrollmentStateSchema,
  EnrollmentState as State,
} from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { confirmDevice, listEnrollments } from "../device/confirm.ts";
import { enrollmentTable } from "../device/enrollment-text.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { type ListFlags, withJson, withList } from "../list-options.ts";
import { enumName, enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { styleFor } from "../print/style.ts";
import { timeText } from "../print/time.ts";
import { gather } from "../repeatable.ts";
import type { Session } from "../session.ts";
import type { TargetFlags } from "../target.ts";

interface TokenFlags extends TargetFlags {
  label: string[];
  ttl?: string;
  autoConfirm?: true;
  replace?: true;
  json?: true;
}

interface OneFlags extends TargetFlags {
  fingerprint?: string;
  why?: string;
  json?: true;
}

/** The longest time that a token can be good for, in milliseconds. */
const MAX_TTL_MS = 24 * 3_600_000;

/** Registers `reeve device` with join-token, list, confirm, lock, unlock and remove. */
export function registerDevice(program: Command, context: CommandContext): void {
  const device = program
    .command("device")
    .description("Make machines devices, and keep devices out. `reeve devices` lists those that can be called.");
  const token = device.command("join-token").argument("<name>", "the name of the device to be");
  withJson(withConnection(token))
    .description(
      "Make a token with which one machine becomes a device: reeve device-agent --join -. It is shown once, works\n" +
        "once, and is good for 15 minutes.",
    )
    .option("--label <key=value>", "a label of the device to be; can be repeated", gather, [])
    .option("--ttl <time>", "how long the token can be used, at most 24h. Default 15m")
    .option("--auto-confirm", "let in whatever machine shows the token, without a look at its fingerprint")
    .option("--replace", "it may take the place of a device of the same name")
    .action((name: string, flags: TokenFlags) =>
      withOperator(context, flags, (session) => createToken(session, name, flags, context)),
    );
  const list = device.command("list", { isDefault: true }).alias("enrollments");
  withList(withConnection(list.description("List enrollments, newest first. The default.")))
    .addOption(new Option("--state <state>", "only those in this state").choices(enumNames(EnrollmentStateSchema)))
    .action((flags: TargetFlags & ListFlags & { state?: string }) =>
      withSession(context, flags, (session) => list_(session, flags, context)),
    );
  const one = (
    name: string,
    what: string,
    verb: (session: Session, id: string, flags: OneFlags) => Promise<Enrollment>,
  ) =>
    withJson(withConnection(device.command(name).argument(...(what.split("|") as [string, string])))).action(
      (id: string, flags: OneFlags) =>
        withOperator(context, flags, async (session) => show(await verb(session, id, flags), flags, context)),
    );
  one("confirm", "<enrollment>|the enrollment's id, or the device's name", (session, id, { fingerprint }) =>
    confirmDevice(session, id, fingerprint, context),
  )
    .description(
      "Let a device in whose key was shown with a token, after comparing fingerprints with the device's own.",
    )
    .option("--fingerprint <pairs>", "the fingerprint that the device shows; without it, you are asked to compare");
  one("lock", "<device>|the device, by id or name", async ({ enrollment }, id, { why = "" }) =>
    known(id, await enrollment.lockDevice({ device: id, why })),
  )
    .description("Keep a device out: its streams end, and it takes part in nothing until it is unlocked.")
    .option("--why <text>", "why, for the record and for whoever asks");
  one("unlock", "<device>|the device, by id or name", async ({ enrollment }, id) =>
    known(id, await enrollment.unlockDevice({ device: id })),
  ).description("Let a locked device take part again.");
  one("remove", "<device>|the device by id or name, or an enrollment", async ({ enrollment }, id, { why = "" }) =>
    known(id, await enrollment.removeDevice({ device: id, why })),
  )
    .description(
      "Remove a device for good, or take an invitation back. Its name is free, its certificates are refused.",
    )
    .option("--why <text>", "why, for the record");
}

async function createToken(session: Session, name: string, flags: TokenFlags, context: CommandContext): Promise<void> {
  const { token, enrollment } = await session.enrollment.createJoinToken({
    name,
    labels: labelsFrom(flags.label),
    ttlSeconds: flags.ttl === undefined ? 0 : secondsFrom(flags.ttl),
    autoConfirm: flags.autoConfirm === true,
    replace: flags.replace === true,
  });
  if (flags.json) {
    context.stdout.write(
      jsonDocument({ token, enrollment: enrollment ? wholeJson(EnrollmentSchema, enrollment) : null }),
    );
    return;
  }
  context.stdout.write(`${token}\n`);
  const next = flags.autoConfirm ? "" : `; then compare fingerprints: reeve device confirm ${name}`;
  context.stderr.write(
    `reeve: on the machine: reeve device-agent --join -, which asks for it, until ${timeText(enrollment?.expireTime)}${next}\n` +
      "reeve: the token is not shown again\n",
  );
}

async function list_(
  session: Session,
  { state, limit, json }: ListFlags & { state?: string },
  context: CommandContext,
): Promise<void> {
  const wanted =
    state === undefined ? State.UNSPECIFIED : (enumValue<State>(EnrollmentStateSchema, state) ?? State.UNSPECIFIED);
  const found = await listEnrollments(session, wanted, limit);
  if (json)
    return void context.stdout.write(
      jsonDocument({ enrollments: found.map((one) => wholeJson(EnrollmentSchema, one)) }),
    );
  context.stdout.write(enrollmentTable(found, styleFor(context, context.stdout)));
}

function show(enrollment: Enrollment, { json }: OneFlags, context: CommandContext): void {
  if (json) return void context.stdout.write(jsonDocument(wholeJson(EnrollmentSchema, enrollment)));
  const { name, deviceId, state } = enrollment;
  const id = deviceId === "" ? "" : ` (${deviceId})`;
  context.stderr.write(`reeve: ${name}${id} is ${enumName(EnrollmentStateSchema, state)}\n`);
}

function known(id: string, { enrollment }: { enrollment?: Enrollment | undefined }): Enrollment {
  if (enrollment !== undefined) return enrollment;
  throw new Error(`the registry said nothing of ${id}`);
}

function labelsFrom(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`--label: ${JSON.stringify(text)} is not of the form key=value`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

function secondsFrom(text: string): number {
  const ms = parseDuration(text, "--ttl");
  if (ms >= 1000 && ms <= MAX_TTL_MS) return Math.ceil(ms / 1000);
  throw new UsageError(`--ttl: ${text} is not from 1s to 24h`);
}
