import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import type { ConnectError } from "@connectrpc/connect";
import type { Enrollment } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { parseJoinToken } from "../../../lib/identity/join-token.ts";
import { defaultReadRoots } from "../roots/default-read-roots.ts";
import { type DeviceEnrollment, enrollmentFiles, readEnrollment } from "./enrollment-file.ts";
import { joinControlPlane } from "./join.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** How a device joins, where it has a token. */
export interface Joining {
  /** The join token. One that the device has joined with already is passed over. */
  token?: string;
  /** The file with a token for a device that has not joined yet. */
  tokenFile?: string | undefined;
  /** Variables whose values come from a configuration file, which is read again at each start: they are not kept. */
  notKept?: ReadonlySet<string>;
  /** Called once, when an operator has to compare the fingerprint. */
  onPending?(enrollment: Enrollment): void;
  /** Called when the control plane cannot be reached and will be asked again. */
  onRetry?(error: ConnectError): void;
  /** Gives up joining. */
  signal?: AbortSignal;
}

/** What a device agent starts with. */
export interface Enrolled {
  /** Its environment, and what it knows from joining. */
  env: Environment;
  /** Undefined for a device that has not joined and has no token: it is dialed, or has its certificate from elsewhere. */
  enrollment: DeviceEnrollment | undefined;
}

/** Joins where the device has a token and has not joined with it, and finds what it starts with. Rejects as joinControlPlane does. */
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
  { token, tokenFile, notKept = new Set(), ...callbacks }: Joining,
): Promise<DeviceEnrollment | undefined> {
  const wanted =
    token ?? (known === undefined && tokenFile !== undefined ? await readFile(tokenFile, "utf8") : undefined);
  if (wanted === undefined || parseJoinToken(wanted).id === known?.id) return known;
  return joinControlPlane({
    ...callbacks,
    token: wanted,
    stateDir,
    settings: withRoots(settingsToKeep(env, notKept), env),
  });
}

/** Where no folder is named, and no owner's manifest that does, the one that the device joins in may be read, as with `reeve up`. */
function withRoots(settings: Record<string, string>, env: Environment): Record<string, string> {
  if (env.REEVE_DEVICE_READ_ROOTS || env.REEVE_DEVICE_WRITE_ROOTS || env.REEVE_DEVICE_MANIFEST) return settings;
  const roots = defaultReadRoots(process.cwd(), env.HOME || homedir());
  return { ...settings, REEVE_DEVICE_READ_ROOTS: roots.join(":") };
}

/** The settings that an owner gives once, when the device joins, and need not give again. */
const KEPT =
  /^REEVE_DEVICE_(MODE|READ_ROOTS|WRITE_ROOTS|DENIED|WORK_DIR|CAPABILITIES|MAX_RUNNING|OPERATOR_PLACES|RETENTION|SERVICES|SERVICES_DESCRIPTORS|PLUGINS|HOSTS|MANIFEST|MANIFEST_KEYS)$/;

/** What to keep of an environment, so that the device starts without it from then on. */
export function settingsToKeep(env: Environment, notKept: ReadonlySet<string> = new Set()): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => KEPT.test(entry[0]) && !!entry[1] && !notKept.has(entry[0]),
  );
  return Object.fromEntries(kept);
}

/**
 * The environment of a device that has joined: what it kept, over that its present environment, and above all the name, the
 * labels and the identity that it was given, which are not for its owner to change. Where it dials may be changed.
 */
export function enrolledEnvironment(stateDir: string, enrollment: DeviceEnrollment, env: Environment): Environment {
  const files = enrollmentFiles(stateDir, enrollment.id);
  const labels = Object.entries(enrollment.labels).map(([key, value]) => `${key}=${value}`);
  return {
    REEVE_DEVICE_REGISTRY_URL: enrollment.urls.join(","),
    ...enrollment.settings,
    ...Object.fromEntries(Object.entries(env).filter(([, value]) => value)),
    REEVE_DEVICE_NAME: enrollment.name,
    REEVE_DEVICE_LABELS: labels.join(","),
    REEVE_GRANT_KEY: "",
    REEVE_GRANT_KEY_FILE: files.grantKeysFile,
    REEVE_TLS_CERT_FILE: files.certFile,
    REEVE_TLS_KEY_FILE: files.keyFile,
    REEVE_TLS_CA_FILE: files.caFile,
    REEVE_TRUST_DOMAIN: enrollment.domain,
  };
}
