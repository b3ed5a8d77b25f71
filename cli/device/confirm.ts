import { type Enrolment, EnrolmentState as State } from "../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { readAll } from "../print/pages.ts";
import { askLine, canAsk } from "../print/prompt.ts";
import type { Session } from "../session.ts";

/** Enrolments in a state, newest first. */
export function listEnrolments(
  { enrolment }: Pick<Session, "enrolment">,
  state: State,
  limit?: number,
): Promise<Enrolment[]> {
  return readAll(async (pageToken, room) => {
    const page = await enrolment.listEnrolments({ state, pageToken, pageSize: Math.min(room, 1000) });
    return { items: page.enrolments, nextPageToken: page.nextPageToken };
  }, limit);
}

/**
 * Confirms a device by its enrolment's id or its name, with the fingerprint that was compared: the given one, or the one
 * that is shown here and that a person compares with the device's. Throws a UsageError where nobody can be asked, nothing
 * waits, or the person says no.
 */
export async function confirmDevice(
  session: Session,
  what: string,
  given: string | undefined,
  context: CommandContext,
): Promise<Enrolment> {
  const waiting = await findWaiting(session, what);
  const fingerprint = given?.trim().toUpperCase() ?? (await compared(waiting, context));
  const { enrolment } = await session.enrolment.confirmEnrolment({ enrolmentId: waiting.id, fingerprint });
  return enrolment ?? waiting;
}

async function findWaiting(session: Session, what: string): Promise<Enrolment> {
  const waiting = await listEnrolments(session, State.PENDING);
  const [found, another] = waiting.filter(({ id, name }) => id === what || name === what);
  if (found !== undefined && another === undefined) return found;
  if (another !== undefined) {
    throw new UsageError(`two devices named ${JSON.stringify(what)} wait`, [
      "name the enrolment: `reeve device list --state pending`",
    ]);
  }
  const names = waiting.map(({ name }) => name).join(", ");
  throw new UsageError(`no device waits to be confirmed under ${JSON.stringify(what)}`, [
    names === "" ? "none waits at all" : `waiting: ${names}`,
  ]);
}

async function compared({ name, deviceId, fingerprint }: Enrolment, context: CommandContext): Promise<string> {
  if (!canAsk(context)) {
    throw new UsageError("nobody can be asked here: say which fingerprint the device shows", [
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
