import type { KeyObject } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  type Enrollment,
  EnrollmentService,
  type JoinResponse,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { createPrivateFile } from "../../../lib/files/private-file.ts";
import { deviceIdOf } from "../../../lib/identity/device-id.ts";
import { signJoin } from "../../../lib/identity/join-proof.ts";
import { type JoinToken, parseJoinToken } from "../../../lib/identity/join-token.ts";
import { createRequest, generateTlsKey, tlsKeyFromPem, tlsKeyToPem } from "../../../lib/identity/request.ts";
import { createServiceTransport } from "../../../lib/rpc-client/transport.ts";
import { loadOrCreateKeyFile } from "../../../lib/sign/key-file.ts";
import type { SigningKey } from "../../../lib/sign/keys.ts";
import { AGENT_VERSION } from "../agent-version.ts";
import { buildManifest, sealManifest } from "../manifest/manifest.ts";
import { replaceFile } from "../replace-file.ts";
import { openStateDir } from "../state-dir.ts";
import { findAuthority } from "./control-plane.ts";
import { type DeviceEnrollment, enrollmentFiles, writeEnrollment } from "./enrollment-file.ts";

export interface JoinOptions {
  /** The join token. */
  token: string;
  /** The agent's own folder; made when missing. */
  stateDir: string;
  /** What to keep with the enrollment, as settings in the environment. */
  settings?: Readonly<Record<string, string>>;
  /** Called once, when an operator has to compare the fingerprint. */
  onPending?(enrollment: Enrollment): void;
  /** Called when the control plane cannot be reached and will be asked again. */
  onRetry?(error: ConnectError): void;
  /** Gives up; the same token can be shown again later. */
  signal?: AbortSignal;
}

/** The longest wait before the control plane is asked again, in milliseconds. */
const MAX_RETRY_MS = 10_000;

/**
 * Makes this machine a device: checks that the control plane is the one that the token names, before anything is sent to
 * it, makes a key that stays here, and asks until an operator has confirmed it. What it gets becomes active all at once or
 * not at all; joining with the same token again after a break goes on with the same key. Rejects with INVALID_INPUT for
 * what is no token, IDENTITY_REFUSED for another control plane, JOIN_REFUSED, and the signal's reason.
 */
export async function joinControlPlane(options: JoinOptions): Promise<DeviceEnrollment> {
  const token = parseJoinToken(options.token);
  const state = await openStateDir(options.stateDir);
  const { key } = await loadOrCreateKeyFile(state.keyFile);
  const files = enrollmentFiles(state.path, token.id);
  const { url, authority } = await reach(token);
  const tlsKey = await keepTlsKey(files.keyFile);
  const joined = await askUntilIn(url, authority, await requestOf(token, key, tlsKey), options);
  await replaceFile(files.caFile, authority);
  const grantKeys = joined.grantKeys.map((key) => `${Buffer.from(key).toString("base64")}\n`);
  await replaceFile(files.grantKeysFile, grantKeys.join(""));
  await replaceFile(files.certFile, joined.certificateChain);
  const { id, name, labels, urls, domain } = token;
  const keyringVersion = Number(joined.keyringVersion);
  const enrollment = { id, name, labels, urls, domain, keyringVersion, settings: options.settings ?? {} };
  await writeEnrollment(state.path, enrollment);
  return enrollment;
}

/** The first address that answers. One that shows another authority ends it: that is no accident. */
async function reach(token: JoinToken): Promise<{ url: string; authority: string }> {
  const problems: unknown[] = [];
  for (const url of token.urls) {
    try {
      return { url, authority: await findAuthority(url, token.ca) };
    } catch (error: unknown) {
      if (faultDetail(error) !== undefined) throw error;
      problems.push(error);
    }
  }
  const cause = new AggregateError(problems);
  throw new ConnectError(
    `the control plane is not reached at ${token.urls.join(", ")}`,
    Code.Unavailable,
    undefined,
    undefined,
    cause,
  );
}

/** The key for this token: the one from before, where the device has shown it already. */
async function keepTlsKey(path: string): Promise<KeyObject> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  if (!existsSync(path)) await createPrivateFile(path, tlsKeyToPem(generateTlsKey()));
  return tlsKeyFromPem(readFileSync(path, "utf8"));
}

async function requestOf(token: JoinToken, key: SigningKey, tlsKey: KeyObject) {
  const { id: tokenId, secret, domain } = token;
  const certificateRequest = await createRequest(tlsKey, { kind: "device", id: deviceIdOf(key), trustDomain: domain });
  return {
    domain,
    message: {
      tokenId,
      secret,
      certificateRequest,
      manifest: joiningManifest(key, token),
      proof: signJoin(key, tokenId, certificateRequest),
    },
  };
}

/**
 * The manifest that a device joins with: who it is, with the name and labels of the token. What it can do it says when it
 * attaches.
 */
function joiningManifest(key: SigningKey, { name, labels }: Pick<JoinToken, "name" | "labels">): SignedEnvelope {
  const manifest = buildManifest({
    key,
    name,
    labels,
    mode: Mode.USER,
    capabilities: [],
    readRoots: [],
    writeRoots: [],
    hosts: [],
    sandbox: SandboxLevel.NONE,
    platform: `${process.platform}/${process.arch}`,
    agentVersion: AGENT_VERSION,
    unavailable: [],
    announced: [],
    issueMs: Date.now(),
  });
  return sealManifest(key, manifest).envelope;
}

async function askUntilIn(
  baseUrl: string,
  ca: string,
  { domain, message }: Awaited<ReturnType<typeof requestOf>>,
  { onPending, onRetry, signal }: JoinOptions,
): Promise<JoinResponse> {
  const serverName = { kind: "service", name: "registry", trustDomain: domain } as const;
  const transport = createServiceTransport({ baseUrl, ca, serverName });
  const client = createClient(EnrollmentService, transport);
  let isReported = false;
  try {
    for (let failures = 0; ; ) {
      signal?.throwIfAborted();
      const answer = await client.join(message, signal === undefined ? {} : { signal }).catch(retryable);
      if (!(answer instanceof ConnectError) && answer.certificateChain !== "") return answer;
      failures = answer instanceof ConnectError ? failures + 1 : 0;
      if (answer instanceof ConnectError) onRetry?.(answer);
      else if (!isReported && answer.enrollment !== undefined) {
        isReported = true;
        onPending?.(answer.enrollment);
      }
      const wait = answer instanceof ConnectError ? Math.min(MAX_RETRY_MS, 250 * 2 ** failures) : delayOf(answer);
      await sleep(wait, undefined, signal === undefined ? {} : { signal });
    }
  } finally {
    transport.close();
  }
}

function delayOf({ retryDelay }: JoinResponse): number {
  return retryDelay === undefined ? MAX_RETRY_MS : Math.min(MAX_RETRY_MS, durationMs(retryDelay));
}

/** Too many wrong tokens came from the device's address, perhaps not from the device: that passes, too. */
const RETRYABLE = new Set([Code.Unavailable, Code.DeadlineExceeded, Code.Aborted, Code.ResourceExhausted]);

/** Refusals are for ever; what a restart or a network heals is asked again. */
function retryable(error: unknown): ConnectError {
  const known = ConnectError.from(error);
  if (RETRYABLE.has(known.code)) return known;
  throw error;
}
