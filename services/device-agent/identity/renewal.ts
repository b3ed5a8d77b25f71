import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type ConnectError, createClient } from "@connectrpc/connect";
import { EnrollmentService } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { BACKDATE_MS } from "../../../lib/identity/authority.ts";
import { createRequest, tlsKeyFromPem } from "../../../lib/identity/request.ts";
import { identityOf } from "../../../lib/identity/spiffe.ts";
import { staticTls } from "../../../lib/identity/tls-source.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { createServiceTransport } from "../../../lib/rpc-client/transport.ts";
import { openCount } from "../count-file.ts";
import { replaceFile } from "../replace-file.ts";
import type { EnrollmentFiles } from "./enrollment-file.ts";

export interface RenewalOptions {
  files: EnrollmentFiles;
  /** Where the registry is reached. At least one; each try takes the next. */
  urls: readonly string[];
  trustDomain: string;
  logger: Logger;
  /** Called once, when the certificate has expired: the device has to enroll again. */
  onExpired(error: Error): void;
  /** Milliseconds since 1970. Default the system's clock. */
  now?: () => number;
}

/** Keeps the certificate in its file valid. */
export interface Renewal {
  /** Renews now, whenever it is due. Rejects with what the control plane answers. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/** How long a renewal may take, in milliseconds. */
const TIMEOUT_MS = 15_000;

/** The longest sleep at once: timers take no more than 24 days, and clocks are set. Milliseconds. */
const LONGEST_SLEEP_MS = 60_000;

/** How far from the middle of a certificate's validity its renewal may be, as a part of it, to either side. */
const SPREAD = 0.1;

/** The longest wait after a renewal that failed, in milliseconds. */
const LONGEST_RETRY_MS = 60_000;

/** The certificate in the file. IDENTITY_REFUSED where it has expired. */
export async function requireUnexpired(files: EnrollmentFiles, now: number): Promise<X509Certificate> {
  const certificate = new X509Certificate(await readFile(files.certFile));
  if (now < Date.parse(certificate.validTo)) return certificate;
  const message =
    `the device's certificate expired at ${new Date(certificate.validTo).toISOString()}. Enroll again: an operator makes a ` +
    "token with `reeve device join-token NAME --replace`, and `reeve device join` asks for it";
  throw identityRefused("expired", undefined, { message });
}

/**
 * Renews the certificate halfway through its validity, give or take a tenth, and tries again until it has expired. The number of a
 * renewal is on disk before the control plane sees it, so that a number that comes twice shows a copied folder.
 */
export async function keepRenewed(options: RenewalOptions): Promise<Renewal> {
  const { files, urls, logger, now = Date.now } = options;
  const closing = new AbortController();
  const count = await openCount(files.renewCountFile, "renewals");
  let tries = 0;

  const renew = async (): Promise<void> => {
    const renewCount = await count.next();
    const url = urls[tries++ % urls.length] ?? "";
    const answer = await ask(url, renewCount, options, closing.signal);
    if (answer.trustedAuthorities !== "") await replaceFile(files.caFile, answer.trustedAuthorities);
    await replaceFile(files.certFile, answer.certificateChain);
    const { validTo } = new X509Certificate(answer.certificateChain);
    logger.info({ registry: url, valid_to: new Date(validTo).toISOString() }, "certificate renewed");
  };
  const run = async (): Promise<void> => {
    let next = renewAt(await requireUnexpired(files, now()), Math.random());
    while (!closing.signal.aborted) {
      const certificate = await requireUnexpired(files, now());
      const wait = next - now();
      if (wait > 0) await pause(Math.min(wait, LONGEST_SLEEP_MS), closing.signal);
      else if (await tried(renew, logger)) next = renewAt(await requireUnexpired(files, now()), Math.random());
      else next = now() + retryMs(Date.parse(certificate.validTo) - now(), Math.random());
    }
  };
  const running = run().catch((error: unknown) => {
    if (!isExpiry(error)) return logger.error({ err: error }, "certificate renewal stopped");
    logger.error(error.rawMessage);
    options.onExpired(error);
  });
  return {
    renew,
    async close() {
      closing.abort();
      await running;
    },
  };
}

async function ask(url: string, renewCount: bigint, { files, trustDomain }: RenewalOptions, signal: AbortSignal) {
  const [cert, key, ca] = (await Promise.all(
    [files.certFile, files.keyFile, files.caFile].map((path) => readFile(path, "utf8")),
  )) as [string, string, string];
  const identity = identityOf(new X509Certificate(cert));
  if (identity === undefined) throw new Error(`${files.certFile} names no device`);
  const transport = createServiceTransport({
    baseUrl: url,
    tls: staticTls({ cert, key, ca }),
    serverName: { kind: "service", name: "registry", trustDomain },
  });
  try {
    const certificateRequest = await createRequest(tlsKeyFromPem(key), identity);
    const client = createClient(EnrollmentService, transport);
    return await client.renewCertificate({ certificateRequest, renewCount }, { signal, timeoutMs: TIMEOUT_MS });
  } finally {
    transport.close();
  }
}

function isExpiry(error: unknown): error is ConnectError {
  return faultDetail(error)?.metadata.why === "expired";
}

async function tried(renew: () => Promise<void>, logger: Logger): Promise<boolean> {
  try {
    await renew();
    return true;
  } catch (err: unknown) {
    logger.warn({ err }, "certificate not renewed; trying again");
    return false;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}

/** When to renew a certificate, in milliseconds since 1970: about its half-life, spread by a random number from 0 to 1. */
export function renewAt(
  { validFrom, validTo }: Pick<X509Certificate, "validFrom" | "validTo">,
  random: number,
): number {
  const end = Date.parse(validTo);
  const validMs = end - (Date.parse(validFrom) + BACKDATE_MS);
  return end - validMs * (0.5 + SPREAD - 2 * SPREAD * random);
}

/** How long to wait after a renewal that failed, in milliseconds: the less time is left, the less. */
export function retryMs(leftMs: number, random: number): number {
  return Math.min(LONGEST_RETRY_MS, Math.max(100, leftMs / 10)) * (0.5 + random / 2);
}
