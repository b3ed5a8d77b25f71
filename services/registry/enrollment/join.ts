import type { KeyObject } from "node:crypto";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Transaction } from "kysely";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import {
  type Enrollment,
  type JoinRequest,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { RegistryTables } from "../tables.ts";
import { type Applicant, decideJoin, type JoinDecision, verifyApplicant } from "./applicant.ts";
import { keepCertificate, signFor } from "./certificates.ts";
import { isEnrollmentId, isSecret, requirePki } from "./create-join-token.ts";
import type { EnrollmentParts } from "./parts.ts";
import { deviceLocked, joinRefused, tooManyWrongTokens } from "./refusals.ts";
import { type EnrollmentRow, findEnrollment, LIVE, toEnrollment } from "./store.ts";

/** How long a device waits before it asks again, in milliseconds. */
const RETRY_MS = 2000;

/** Refusals of one token that are recorded; the token's holder could fill the log otherwise. */
const MAX_REFUSALS = 10;

/** What a device that asks gets. */
interface Joined {
  enrollment: Enrollment;
  certificateChain: string;
  grantKeys: Uint8Array[];
  keyringVersion: bigint;
  retryDelay?: Duration;
}

/**
 * Lets a machine become a device: the first key that shows the token is bound to it, and gets its certificate once an
 * operator has confirmed it, or at once where the token says so. The same key may ask again. Throws JOIN_REFUSED,
 * DEVICE_LOCKED, and RATE_LIMITED where too many wrong tokens came from the address. A secret that is wrong costs one look
 * into the database and no cryptography.
 *
 * @param address of the caller; undefined where it is in this process.
 */
export async function join(parts: EnrollmentParts, request: JoinRequest, address?: string): Promise<Joined> {
  requirePki(parts);
  const row = await findInvited(parts, request, address);
  const { applicant, publicKey } = await verifyApplicant(request).catch((error: unknown) =>
    refuse(parts, row, error instanceof Error ? error : new Error(String(error))),
  );
  const pinned = await parts.fleet.pinned(row.name);
  const { decision, changeId } = await parts.writes.write((trx) =>
    decide(parts, trx, row.id, {
      ...applicant,
      nameIsPinned: pinned !== undefined && pinned.deviceId !== applicant.deviceId,
    }),
  );
  if (changeId !== undefined) await parts.changes.applied(changeId);
  if (decision.kind === "locked") throw deviceLocked(row.name, row);
  if (decision.kind === "refused") return refuse(parts, row, joinRefused(decision.why), applicant);
  const current = await findEnrollment(parts.db, row.id);
  if (current.state !== State.ENROLLED) {
    const enrollment = toEnrollment(current, parts.now());
    return {
      enrollment,
      certificateChain: "",
      grantKeys: [],
      keyringVersion: 0n,
      retryDelay: durationFromMs(RETRY_MS),
    };
  }
  const { version: keyringVersion, keys } = await parts.grantKeys();
  const certificateChain = await firstCertificate(parts, current, publicKey);
  const enrollment = toEnrollment(await findEnrollment(parts.db, row.id), parts.now());
  return { enrollment, certificateChain, grantKeys: [...keys], keyringVersion };
}

/** The refusal is the same for an unknown token and for a wrong secret. */
async function findInvited(
  { db, wrongTokens }: EnrollmentParts,
  { tokenId, secret }: JoinRequest,
  address: string | undefined,
): Promise<EnrollmentRow> {
  const waitMs = address === undefined ? 0 : wrongTokens.waitMs(address);
  if (waitMs > 0) throw tooManyWrongTokens(waitMs);
  const refuseUnknown = (): Error => {
    if (address !== undefined) wrongTokens.spend(address);
    return joinRefused("unknown");
  };
  if (!isEnrollmentId(tokenId)) throw refuseUnknown();
  const row = await db.selectFrom("enrollments").selectAll().where("id", "=", tokenId).executeTakeFirst();
  if (row === undefined || row.state === State.UNSPECIFIED || !isSecret(secret, row.secret_hash)) {
    throw refuseUnknown();
  }
  return row;
}

async function decide(
  parts: EnrollmentParts,
  trx: Transaction<RegistryTables>,
  id: string,
  applicant: Applicant & { nameIsPinned: boolean },
): Promise<{ decision: JoinDecision; changeId?: string }> {
  const row = await findEnrollment(trx, id);
  const decision = decideJoin(row, applicant, parts.now());
  if (decision.kind !== "bind") return { decision };
  await requireFree(trx, row, applicant);
  const { deviceId: device_id, fingerprint } = applicant;
  await trx.updateTable("enrollments").set({ device_id, fingerprint }).where("id", "=", id).execute();
  const isConfirmed = row.auto_confirm === 1;
  const change = isConfirmed ? DeviceIdentityChange.ENROLLED : DeviceIdentityChange.PENDING;
  const changeId = await parts.changes.plan(
    trx,
    {
      change,
      changeId: `${id}/${change}`,
      enrollmentId: id,
      deviceId: device_id,
      name: row.name,
      fingerprint,
      why: isConfirmed ? "the token confirms by itself" : "",
      actor: device_id,
    },
    { kind: "state", enrollmentId: id, from: [State.INVITED], to: isConfirmed ? State.ENROLLED : State.PENDING },
  );
  return { decision, changeId };
}

/** JOIN_REFUSED where the name belongs to another device, or the device is enrolled under another name. */
async function requireFree(
  trx: Transaction<RegistryTables>,
  row: EnrollmentRow,
  { deviceId, nameIsPinned }: Applicant & { nameIsPinned: boolean },
): Promise<void> {
  const live = await trx
    .selectFrom("enrollments")
    .select(["name", "device_id"])
    .where("state", "in", [...LIVE])
    .where((where) => where.or([where("name", "=", row.name), where("device_id", "=", deviceId)]))
    .execute();
  const other = live.find(({ name }) => name !== row.name);
  if (other !== undefined) throw joinRefused("key", `this device has enrolled as ${other.name}; remove that first`);
  if (row.replaces === 1 || (live.length === 0 && !nameIsPinned)) return;
  throw joinRefused("name", `there is a device named ${row.name}; remove it first, or make a token that replaces it`);
}

/** The certificate that was given out, or a first one. Two who ask at once get the same. */
async function firstCertificate(parts: EnrollmentParts, row: EnrollmentRow, publicKey: KeyObject): Promise<string> {
  const { trustDomain, certificateTtlMs: ttlMs } = parts;
  const now = parts.now();
  if (row.certificate !== "" && (row.certificate_expire_ms ?? 0) > now) return row.certificate;
  // A token is no way to a second certificate.
  if (row.certificate !== "") throw joinRefused("expired", "the certificate that this token gave has expired");
  const issued = await signFor(row.device_id, publicKey, {
    authorities: requirePki(parts).authorities,
    trustDomain,
    ttlMs,
    now,
  });
  return parts.writes.write(async (trx) => {
    const { certificate } = await findEnrollment(trx, row.id);
    if (certificate !== "") return certificate;
    await keepCertificate(trx, row, issued, now);
    await trx.updateTable("enrollments").set({ certificate: issued.chain }).where("id", "=", row.id).execute();
    return issued.chain;
  });
}

/** A refusal of a valid token goes into the audit log. */
async function refuse(parts: EnrollmentParts, row: EnrollmentRow, error: Error, applicant?: Applicant): Promise<never> {
  await parts.writes.write(async (trx) => {
    const { refusals } = await findEnrollment(trx, row.id);
    if (refusals >= MAX_REFUSALS) return;
    await trx
      .updateTable("enrollments")
      .set({ refusals: refusals + 1 })
      .where("id", "=", row.id)
      .execute();
    await parts.changes.note(trx, {
      change: DeviceIdentityChange.REFUSED,
      enrollmentId: row.id,
      deviceId: applicant?.deviceId ?? "",
      name: row.name,
      fingerprint: applicant?.fingerprint ?? "",
      why: error.message,
      actor: applicant?.deviceId ?? "",
    });
  });
  parts.changes.wake();
  throw error;
}
