import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Enrollment,
  EnrollmentSchema,
  EnrollmentStateSchema,
} from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { parseDuration } from "../flags/duration.ts";
import { enumName } from "../print/enum-name.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";

/** The longest a join token is valid, in milliseconds. */
const MAX_TTL_MS = 24 * 3_600_000;

/** The enrollment that a change returned. */
export function changed(id: string, { enrollment }: { enrollment?: Enrollment | undefined }): Enrollment {
  if (enrollment !== undefined) return enrollment;
  throw new Error(`the registry returned nothing about ${id}`);
}

/** Shows where an enrollment stands after a change. */
export function showEnrollment(enrollment: Enrollment, { json }: { json?: true }, context: CommandContext): void {
  if (json) return void context.stdout.write(jsonDocument(wholeJson(EnrollmentSchema, enrollment)));
  const { name, deviceId, state } = enrollment;
  const id = deviceId === "" ? "" : ` (${deviceId})`;
  context.stderr.write(`reeve: ${name}${id} is ${enumName(EnrollmentStateSchema, state)}\n`);
}

/** Labels from key=value texts. Throws a UsageError. */
export function labelsFrom(texts: readonly string[]): Record<string, string> {
  const pairs = texts.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`--label: ${JSON.stringify(text)} is not of the form key=value`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

/** The duration of `--ttl`. Throws a UsageError. */
export function ttlFrom(text: string): Duration {
  const ms = parseDuration(text, "--ttl");
  if (ms >= 1000 && ms <= MAX_TTL_MS) return durationFromMs(ms);
  throw new UsageError(`--ttl: ${text} is not from 1s to 24h`);
}
