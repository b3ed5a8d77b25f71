import type { DescService } from "@bufbuild/protobuf";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { AuthorityService } from "../../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { EnrollmentService } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { loadSealingKey } from "../../../lib/identity/seal.ts";
import type { TlsSource } from "../../../lib/identity/tls-source.ts";
import { callerAddress } from "../../../lib/server/connections.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { createRateLimit } from "../../../lib/server/rate-limit.ts";
import { createGroupCommit } from "../../../lib/store/group-commit.ts";
import { createSlidingCounter } from "../devices/sliding-counter.ts";
import { type Admission, createAdmission } from "./admission.ts";
import { openAuthorities, toAuthority } from "./authorities.ts";
import { createChanges } from "./changes.ts";
import { confirmEnrollment } from "./confirm.ts";
import { createJoinToken, requirePki } from "./create-join-token.ts";
import { createApply } from "./effects.ts";
import { join } from "./join.ts";
import { lockCloned, lockDevice, removeDevice, unlockDevice } from "./lock.ts";
import type { DevicePki, EnrolledFleet, EnrollmentOptions, EnrollmentParts } from "./parts.ts";
import { renewCertificate } from "./renew.ts";
import { trustDevices } from "./server-trust.ts";
import { listEnrollments } from "./store.ts";

/** How machines become devices, and stop being some. */
export interface Enrollment extends Admission {
  routes(router: ConnectRouter): void;
  /** Only what a machine calls itself: Join and RenewCertificate. */
  machineRoutes(router: ConnectRouter): void;
  services: DescService[];
  /** Locks a device whose state was found in two places. */
  onCloned(deviceId: string): Promise<void>;
  /** What the server shows and trusts, the authorities of devices included. Undefined in cleartext. */
  tls: TlsSource | undefined;
  close(): Promise<void>;
}

const DAY_MS = 24 * 3_600_000;

/** So many renewals of a device within a day that come below a number that was used are no accident. */
const MAX_LOW_RENEWALS = 2;

/** Join tokens that may be wrong from one address: each costs a look into the database, and nothing can be guessed. */
const WRONG_TOKENS = { burst: 30, everyMs: 1_000 };

/** Opens enrollment. Where there is TLS, the authority that signs for devices is made when there is none yet. */
export async function createEnrollment(options: EnrollmentOptions): Promise<Enrollment> {
  const { db, logger, tls, now = Date.now, certificateTtlMs = DAY_MS } = options;
  const fleet: EnrolledFleet = {
    ...options.fleet,
    // What was committed counts whatever comes of this: every replica follows the database by itself, a little later.
    announce: () =>
      options.fleet
        .announce()
        .catch((err: unknown) => logger.error({ err }, "replicas not woken after an enrollment change")),
  };
  await using opened = new AsyncDisposableStack();
  const writes = createGroupCommit(db, { lock: "enrollment" });
  opened.defer(() => writes.close());
  const changes = createChanges({
    ...options,
    writes,
    apply: createApply({ changes: () => changes, fleet, certificateTtlMs, now }),
    ...(options.recordWaitMs === undefined ? {} : { waitMs: options.recordWaitMs }),
  });
  opened.defer(() => changes.close());
  const pki = tls === undefined ? undefined : await openPki(tls, { ...options, writes, changes, now });
  opened.defer(() => pki?.authorities.close());
  const lowRenewals = createSlidingCounter({ limit: MAX_LOW_RENEWALS, withinMs: DAY_MS });
  const wrongTokens = createRateLimit(WRONG_TOKENS);
  const limits = { certificateTtlMs, lowRenewals, wrongTokens };
  const parts: EnrollmentParts = { ...options, fleet, writes, changes, pki, ...limits, now };
  const owned = opened.move();
  return {
    ...createAdmission(db, pki !== undefined, now),
    routes: (router) =>
      router.service(EnrollmentService, enrollmentRoutes(parts)).service(AuthorityService, authorityRoutes(parts)),
    machineRoutes(router) {
      const { join, renewCertificate } = enrollmentRoutes(parts);
      router.rpc(EnrollmentService.method.join, join);
      router.rpc(EnrollmentService.method.renewCertificate, renewCertificate);
    },
    services: [EnrollmentService, AuthorityService],
    onCloned: (deviceId) => lockCloned(parts, deviceId, "it dialed with a number that was used before"),
    tls: pki === undefined ? undefined : trustDevices(pki.own, pki.authorities),
    close: () => owned.disposeAsync(),
  };
}

async function openPki(
  own: TlsSource,
  options: EnrollmentOptions & Pick<EnrollmentParts, "writes" | "changes" | "now">,
): Promise<DevicePki> {
  const sealingKey = await loadSealingKey(options.sealingKeyFile);
  return { own, authorities: await openAuthorities({ ...options, sealingKey }) };
}

function enrollmentRoutes(parts: EnrollmentParts): ServiceImpl<typeof EnrollmentService> {
  return {
    createJoinToken: (request, context) => createJoinToken(parts, request, principalOf(context).id),
    join: (request, context) => join(parts, request, callerAddress(context.values)),
    renewCertificate: (request, context) => renewCertificate(parts, request, principalOf(context).id, context.signal),
    listEnrollments: (request) => listEnrollments(parts.db, parts.now(), request),
    confirmEnrollment: async (request, context) => ({
      enrollment: await confirmEnrollment(parts, request, principalOf(context).id),
    }),
    lockDevice: async ({ device, why }, context) => ({
      enrollment: await lockDevice(parts, { device, why, actor: principalOf(context).id }),
    }),
    unlockDevice: async ({ device }, context) => ({
      enrollment: await unlockDevice(parts, { device, actor: principalOf(context).id }),
    }),
    removeDevice: async ({ device, why }, context) => ({
      enrollment: await removeDevice(parts, { device, why, actor: principalOf(context).id }),
    }),
  };
}

function authorityRoutes(parts: EnrollmentParts): ServiceImpl<typeof AuthorityService> {
  return {
    listAuthorities: async () => ({ authorities: (await parts.pki?.authorities.list())?.map(toAuthority) ?? [] }),
    rotateAuthority: async (_, context) => ({ authority: await rotateAuthority(parts, principalOf(context).id) }),
  };
}

async function rotateAuthority(parts: EnrollmentParts, actor: string) {
  const { authorities } = requirePki(parts);
  const id = await authorities.rotate(actor);
  const made = (await authorities.list()).find((row) => row.id === id);
  if (made === undefined) throw fault(ErrorReason.INTERNAL, {}, { message: "the new authority is gone" });
  return toAuthority(made);
}
