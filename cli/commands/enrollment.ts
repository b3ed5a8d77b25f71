import { type Command, Option } from "commander";
import {
  EnrollmentSchema,
  EnrollmentStateSchema,
  EnrollmentState as State,
} from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withOperator, withSession } from "../connection-options.ts";
import { showEnrollment } from "../device/change.ts";
import { confirmDevice, listEnrollments } from "../device/confirm.ts";
import { enrollmentTable } from "../device/enrollment-text.ts";
import { noteListed } from "../list-notes.ts";
import { type ListFlags, withJson, withList } from "../list-options.ts";
import { enumNames, enumValue } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import type { TargetFlags } from "../target.ts";

type EnrollmentListFlags = TargetFlags & ListFlags & { state?: string };
type ConfirmFlags = TargetFlags & { fingerprint?: string; json?: true };

/** Registers `reeve enrollment` with list and confirm. */
export function registerEnrollment(program: Command, context: CommandContext): void {
  const enrollment = program
    .command("enrollment")
    .description("List the enrollments of devices, and confirm those that wait.");
  withList(withConnection(enrollment.command("list").description("List enrollments, newest first.")))
    .addOption(new Option("--state <state>", "only those in this state").choices(enumNames(EnrollmentStateSchema)))
    .action((flags: EnrollmentListFlags) => list(flags, context));
  withJson(withConnection(enrollment.command("confirm").argument("<enrollment>", "its id, or the device's name")))
    .description("Let a machine in that has shown its key with a token, after comparing fingerprints with its own.")
    .option("--fingerprint <pairs>", "the fingerprint that the machine shows; without it, you are asked to compare")
    .action((id: string, flags: ConfirmFlags) =>
      withOperator(context, flags, async (session) =>
        showEnrollment(await confirmDevice(session, id, flags.fingerprint, context), flags, context),
      ),
    );
}

async function list(flags: EnrollmentListFlags, context: CommandContext): Promise<void> {
  const state = enumValue<State>(EnrollmentStateSchema, flags.state ?? "") ?? State.UNSPECIFIED;
  const { items, nextPageToken } = await withSession(context, flags, (session) =>
    listEnrollments(session, state, flags.limit),
  );
  if (flags.json) {
    const enrollments = items.map((one) => wholeJson(EnrollmentSchema, one));
    return void context.stdout.write(jsonDocument({ enrollments, nextPageToken }));
  }
  context.stdout.write(enrollmentTable(items, context));
  noteListed({ things: "enrollments", shown: items.length, nextPageToken }, context);
}
