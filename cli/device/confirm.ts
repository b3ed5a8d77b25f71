import { type Enrollment, EnrollmentState as State } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { type Page, readPages } from "../print/pages.ts";
import { askLine, canAsk } from "../print/prompt.ts";
import type { Session } from "../session.ts";

/** Enrollments in a state, newest first. */
export function listEnrollments(
  { enrollment }: Pick<Session, "enrollment">,
  state: State,
  limit = Infinity,
): Promise<Page<Enrollment>> {
  return readPages(
    async (pageToken, room) => {
      const page = await enrollment.listEnrollments({ state, pageToken, pageSize: Math.min(room, 1000) });
      return { items: page.enrollments, nextPageToken: page.nextPageToken };
    },
    { limit },
  );
}

/**
 * Confirms a device by its enrollment's id or its name, with the fingerprint that was compared: the given one, or the one
 * that is shown here and that a person compares with the device's. Throws a UsageError where there is no terminal to ask on, nothing
 * waits, or the person says no.
 */
export async function confirmDevice(
  session: Session,
  what: string,
  given: string | undefined,
  context: CommandContext,
): Promise<Enrollment> {
  const waiting = await findWaiting(session, what);
  const fingerprint = given?.trim().toUpperCase() ?? (await compared(waiting, context));
  const { enrollment } = await session.enrollment.confirmEnrollment({ enrollmentId: waiting.id, fingerprint });
  return enrollment ?? waiting;
}

async function findWaiting(session: Session, what: string): Promise<Enrollment> {
  const { items: waiting } = await listEnrollments(session, State.PENDING);
  const [found, another] = waiting.filter(({ id, name }) => id === what || name === what);
  if (found !== undefined && another === undefined) return found;
  if (another !== undefined) {
    throw new UsageError(`two devices named ${JSON.stringify(what)} wait`, [
      "name the enrollment: `reeve enrollment list --state pending`",
    ]);
  }
  const names = waiting.map(({ name }) => name).join(", ");
  throw new UsageError(`no device waits to be confirmed under ${JSON.stringify(what)}`, [
    names === "" ? "none waits at all" : `waiting: ${names}`,
  ]);
}

async function compared({ name, deviceId, fingerprint }: Enrollment, context: CommandContext): Promise<string> {
  if (!canAsk(context)) {
    throw new UsageError("there is no terminal to ask on: say which fingerprint the device shows", [
      "--fingerprint AB:CD:…, as the device printed it",
    ]);
  }
  context.stderr.write(
    `${visibleLine(name)} (${deviceId}) shows this fingerprint:\n\n  ${fingerprint}\n\n` +
      "Compare it with the one on the device's own screen.\n",
  );
  const answer = await askLine(context, "The same? [y/N] ");
  if (/^y(es)?$/i.test(answer?.trim() ?? "")) return fingerprint;
  throw new UsageError("not confirmed");
}
