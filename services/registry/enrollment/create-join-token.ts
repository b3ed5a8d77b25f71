import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type CreateJoinTokenRequest,
  type Enrollment,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import { formatJoinToken } from "../../../lib/identity/join-token.ts";
import { isIdLike } from "../devices/manifest.ts";
import type { DevicePki, EnrollmentParts } from "./parts.ts";
import { joinRefused } from "./refusals.ts";
import { serverAuthorityId } from "./server-trust.ts";
import { findEnrollment, LIVE, labelsText, toEnrollment } from "./store.ts";

/** How long a token can be used where nothing is said, in milliseconds. */
const DEFAULT_TTL_MS = 15 * 60_000;

/**
 * Makes a join token, which works once its making is on record. JOIN_REFUSED where a device of the name has enrolled and
 * is not to be replaced; INVALID_INPUT for a name that could be an id; NOT_AVAILABLE where the registry serves no TLS or does not know its own address.
 */
export async function createJoinToken(
  parts: EnrollmentParts,
  request: CreateJoinTokenRequest,
  actor: string,
): Promise<{ token: string; enrollment: Enrollment }> {
  const { own } = requirePki(parts);
  if (isIdLike(request.name)) throw idForName(request.name);
  const urls = requireUrls(parts);
  const now = parts.now();
  const secret = randomBytes(16).toString("base64url");
  const id = `enr-${randomBytes(16).toString("hex")}`;
  const row = {
    id,
    name: request.name,
    labels: labelsText(request.labels),
    state: State.UNSPECIFIED,
    secret_hash: hashOf(secret),
    auto_confirm: request.autoConfirm ? 1 : 0,
    replaces: request.replace ? 1 : 0,
    created_by: actor,
    create_ms: now,
    expire_ms: now + (request.ttl === undefined ? DEFAULT_TTL_MS : durationMs(request.ttl)),
    certificate_expire_ms: null,
  };
  const changeId = await parts.writes.write(async (trx) => {
    if (!request.replace) {
      const taken = trx.selectFrom("enrollments").select("id").where("name", "=", request.name);
      if ((await taken.where("state", "in", [...LIVE]).executeTakeFirst()) !== undefined) throw nameTaken(request.name);
    }
    await trx.insertInto("enrollments").values(row).execute();
    return parts.changes.plan(
      trx,
      { change: DeviceIdentityChange.INVITED, changeId: `${id}/invited`, enrollmentId: id, name: request.name, actor },
      { kind: "state", enrollmentId: id, from: [State.UNSPECIFIED], to: State.INVITED },
    );
  });
  await parts.changes.applied(changeId);
  const ca = serverAuthorityId(own.current());
  const { name, labels } = request;
  const token = formatJoinToken({ id, secret, urls, ca, domain: parts.trustDomain, name, labels });
  return { token, enrollment: toEnrollment(await findEnrollment(parts.db, id), now) };
}

/** What devices' certificates need. NOT_AVAILABLE where the registry serves no TLS. */
export function requirePki({ pki }: EnrollmentParts): DevicePki {
  if (pki !== undefined) return pki;
  const message =
    "devices enroll over TLS only: set REEVE_TLS_CERT_FILE, REEVE_TLS_KEY_FILE and REEVE_TLS_CA_FILE; `reeve service-ca` makes such files";
  throw fault(ErrorReason.NOT_AVAILABLE, { tool: "enrollment", program: "TLS" }, { message });
}

function requireUrls({ urls }: EnrollmentParts): readonly string[] {
  const known = urls();
  if (known.length > 0) return known;
  const message = "the registry does not know where devices reach it: set REEVE_REGISTRY_PUBLIC_URL";
  throw fault(ErrorReason.NOT_AVAILABLE, { tool: "enrollment", program: "REEVE_REGISTRY_PUBLIC_URL" }, { message });
}

function idForName(name: string): Error {
  const message = `${name} has the form of an id; choose a name that does not look like one`;
  return invalidInput([{ field: "name", rule: "id_like", message }]);
}

function nameTaken(name: string): Error {
  return joinRefused("name", `a device named ${name} has enrolled; remove it first, or let the new one replace it`);
}

/** True where it is the secret, in a time that does not depend on how much of it was right. */
export function isSecret(secret: string, secretHash: Uint8Array): boolean {
  return timingSafeEqual(hashOf(secret), secretHash);
}

/** True where a text has the form of an enrollment's id, so that anything else costs no look into the database. */
export function isEnrollmentId(text: string): boolean {
  return /^enr-[0-9a-f]{32}$/.test(text);
}

/** What is kept of a secret. No slow hash: in 128 random bits there is nothing to guess. */
function hashOf(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}
