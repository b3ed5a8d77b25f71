import { type DeviceEnrollment, enrollmentFiles } from "./enrollment-file.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The settings that an owner gives once, when the device joins, and need not give again. */
const KEPT =
  /^REEVE_DEVICE_(MODE|READ_ROOTS|WRITE_ROOTS|DENIED|WORK_DIR|CAPABILITIES|MAX_RUNNING|OPERATOR_PLACES|RETENTION|SERVICES|SERVICE_DESCRIPTORS)$/;

/** What to keep of an environment, so that the device starts without it from then on. */
export function settingsToKeep(env: Environment): Record<string, string> {
  const kept = Object.entries(env).filter((entry): entry is [string, string] => KEPT.test(entry[0]) && !!entry[1]);
  return Object.fromEntries(kept);
}

/**
 * The environment of a device that has joined: what it kept, over that what it is told now, and above all the name, the
 * labels and the identity that it was given, which are not for its owner to change. Where it dials may be told anew.
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
