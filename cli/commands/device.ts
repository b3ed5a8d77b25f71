import type { Command } from "commander";
import { DeviceSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { type Enrollment, EnrollmentSchema } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { type AgentFlags, withAgentOptions } from "../device/agent-options.ts";
import { changed, labelsFrom, showEnrollment, ttlFrom } from "../device/change.ts";
import { describeDevice, devicesTable, listDevices, noteLocks } from "../device/describe-device.ts";
import { joinMachine } from "../device/join.ts";
import { noteListed } from "../list-notes.ts";
import { type ListFlags, withJson, withList } from "../list-options.ts";
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
  why?: string;
  json?: true;
}

/** Registers `reeve device` with list, show, join-token, join, lock, unlock and remove. */
export function registerDevice(program: Command, context: CommandContext): void {
  const device = program
    .command("device")
    .description("List and show devices, make machines devices, and keep devices out.");
  withList(withConnection(device.command("list").description("List the devices, by name."))).action(
    (flags: TargetFlags & ListFlags) => list(flags, context),
  );
  withJson(withConnection(device.command("show").argument("<device>", "the device, by id or name")))
    .description("Show one device: whether it is online, its mode, labels and tools, and what it cannot offer.")
    .action((id: string, flags: TargetFlags & { json?: true }) =>
      withSession(context, flags, (session) => show(session, id, flags, context)),
    );
  withJson(withConnection(device.command("join-token").argument("<name>", "the name of the device to be")))
    .description(
      "Make a token with which one machine becomes a device, there: reeve device join. It is shown once, works once, and is valid for 15 minutes.",
    )
    .option("--label <key=value>", "a label of the device to be; can be repeated", gather, [])
    .option("--ttl <time>", "how long the token can be used, at most 24h. Default 15m")
    .option("--auto-confirm", "let in any machine that shows the token, without a look at its fingerprint")
    .option("--replace", "it may take the place of a device of the same name")
    .action((name: string, flags: TokenFlags) =>
      withOperator(context, flags, (session) => createToken(session, name, flags, context)),
    );
  withAgentOptions(device.command("join").argument("[file]", "the file with the join token; - asks for it", "-"))
    .description(
      "Make this machine a device, with the token of `reeve device join-token`, and wait until an operator has confirmed it. `reeve serve device` runs it from then on. The token is never an argument: every user can read command lines.",
    )
    .action((file: string, flags: AgentFlags) => joinMachine(file, flags, context));
  const change = (
    name: string,
    what: string,
    description: string,
    verb: (session: Session, id: string, flags: OneFlags) => Promise<{ enrollment?: Enrollment | undefined }>,
  ) =>
    withJson(withConnection(device.command(name).argument("<device>", what)))
      .description(description)
      .action((id: string, flags: OneFlags) =>
        withOperator(context, flags, async (session) =>
          showEnrollment(changed(id, await verb(session, id, flags)), flags, context),
        ),
      );
  const which = "the device, by id or name";
  const lock = "Keep a device out: its streams end, and it takes part in nothing until it is unlocked.";
  change("lock", which, lock, ({ enrollment }, id, { why = "" }) => enrollment.lockDevice({ device: id, why })).option(
    "--why <text>",
    "why, for the record and for every caller of the device",
  );
  change("unlock", which, "Let a locked device take part again.", ({ enrollment }, id) =>
    enrollment.unlockDevice({ device: id }),
  );
  change(
    "remove",
    "the device, by id or name, or an enrollment",
    "Remove a device for good, or take an invitation back. Its name is free, its certificates are refused.",
    ({ enrollment }, id, { why = "" }) => enrollment.removeDevice({ device: id, why }),
  ).option("--why <text>", "why, for the record");
}

async function list(flags: TargetFlags & ListFlags, context: CommandContext): Promise<void> {
  const { items: devices, nextPageToken } = await withSession(context, flags, (session) =>
    listDevices(session, flags.limit),
  );
  if (flags.json) {
    context.stdout.write(
      jsonDocument({ devices: devices.map((device) => wholeJson(DeviceSchema, device)), nextPageToken }),
    );
    return;
  }
  context.stdout.write(devicesTable(devices, context));
  noteLocks(devices, context);
  noteListed(
    { things: "devices", shown: devices.length, nextPageToken, hint: "`reeve device join-token NAME` lets one join" },
    context,
  );
}

async function show(
  { registry }: Session,
  id: string,
  { json }: { json?: true },
  context: CommandContext,
): Promise<void> {
  const { device } = await registry.getDevice({ device: id });
  if (device === undefined) return;
  if (json) context.stdout.write(jsonDocument(wholeJson(DeviceSchema, device)));
  else context.stdout.write(describeDevice(device, styleFor(context, context.stdout), context.now()));
}

async function createToken(session: Session, name: string, flags: TokenFlags, context: CommandContext): Promise<void> {
  const { token, enrollment } = await session.enrollment.createJoinToken({
    name,
    labels: labelsFrom(flags.label),
    ...(flags.ttl !== undefined && { ttl: ttlFrom(flags.ttl) }),
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
  const next = flags.autoConfirm ? "" : `; then compare fingerprints: reeve enrollment confirm ${name}`;
  context.stderr.write(
    `reeve: on the machine: reeve device join, which asks for it, until ${timeText(enrollment?.expireTime)}${next}\n` +
      "reeve: the token is not shown again\n",
  );
}
