import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import type { ConnectError } from "@connectrpc/connect";
import type { Enrollment } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { parseJoinToken } from "../../../lib/identity/join-token.ts";
import { defaultReadRoots } from "../roots/default-read-roots.ts";
import { type DeviceEnrollment, readEnrollment } from "./enrollment-file.ts";
import { enrolledEnvironment, settingsToKeep } from "./environment.ts";
import { joinControlPlane } from "./join.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** How a device joins, where it is told to. */
export interface Joining {
  /** The join token. One that the device has joined with already is passed over. */
  token?: string;
  /** The file with a token for a device that has not joined yet. */
  tokenFile?: string | undefined;
  /** Called once, when an operator has to compare the fingerprint. */
  onPending?(enrollment: Enrollment): void;
  /** Called when the control plane cannot be reached and will be asked again. */
  onRetry?(error: ConnectError): void;
  /** Gives up joining. */
  signal?: AbortSignal;
}

/** What a device agent starts with. */
export interface Enrolled {
  /** What it is told, and what it knows from joining. */
  env: Environment;
  /** Undefined for a device that has not joined and is not told to: it is dialed, or has its certificate from elsewhere. */
  enrollment: DeviceEnrollment | undefined;
}

/** Joins where the device is told to and has not, and finds what it starts with. Rejects as joinControlPlane does. */
export async function openEnrolled(stateDir: string, env: Environment, joining: Joining): Promise<Enrolled> {
  const known = await readEnrollment(stateDir);
  const enrollment = await joined(stateDir, known, env, joining);
  if (enrollment === undefined) return { env, enrollment };
  return { env: enrolledEnvironment(stateDir, enrollment, env), enrollment };
}

async function joined(
  stateDir: string,
  known: DeviceEnrollment | undefined,
  env: Environment,
  { token, tokenFile, ...callbacks }: Joining,
): Promise<DeviceEnrollment | undefined> {
  const wanted =
    token ?? (known === undefined && tokenFile !== undefined ? await readFile(tokenFile, "utf8") : undefined);
  if (wanted === undefined || parseJoinToken(wanted).id === known?.id) return known;
  return joinControlPlane({ ...callbacks, token: wanted, stateDir, settings: withRoots(settingsToKeep(env), env) });
}

/** Where no folder is named, the one that the device joins in may be read, as with `reeve up`. */
function withRoots(settings: Record<string, string>, env: Environment): Record<string, string> {
  if (settings.REEVE_DEVICE_READ_ROOTS || settings.REEVE_DEVICE_WRITE_ROOTS) return settings;
  const roots = defaultReadRoots(process.cwd(), env.HOME || homedir());
  return { ...settings, REEVE_DEVICE_READ_ROOTS: roots.join(":") };
}
