import { NO_HOSTS } from "../../lib/hosts/host-list.ts";
import { deviceIdOf } from "../../lib/identity/device-id.ts";
import { DEFAULT_TRUST_DOMAIN } from "../../lib/identity/spiffe.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { createKeyring } from "../../lib/sign/keys.ts";
import { GRANT_TYPE, RECEIPT_TYPE } from "../../lib/sign/payload-types.ts";
import { attachAgent } from "../../services/device-agent/attach/attach.ts";
import { transportsToRegistry } from "../../services/device-agent/attach/attached-agent.ts";
import { createEndings } from "../../services/device-agent/execute/endings.ts";
import { createExecutions, type Executions } from "../../services/device-agent/execute/executions.ts";
import { createSlots } from "../../services/device-agent/execute/slots.ts";
import { openLink } from "../../services/device-agent/routes.ts";
import type { Enrolled } from "./enroll.ts";
import type { Workshop } from "./workshop.ts";

/**
 * A device as an object: its own key, certificate, connection and stream, grants checked and receipts signed by the
 * device agent's own code. It runs no program, and its ledger and its count of dials are in memory.
 */
export interface SimulatedDevice {
  /** Whether the registry has answered its stream. */
  readonly isAttached: boolean;
  /** How often it has opened a stream. */
  readonly dials: number;
  close(): Promise<void>;
}

/** Attaches it to the registry, until it is closed. */
export function attachDevice(enrolled: Enrolled, url: string, workshop: Workshop): SimulatedDevice {
  const executions = executionsOf(enrolled, workshop);
  const closed = new AbortController();
  const draining = new AbortController();
  const offered = {
    executions,
    // No keys change while this runs.
    trust: { version: () => 1n, follow: () => Promise.resolve() },
    toolsets: { current: () => enrolled, onChange: () => () => undefined },
    closed: closed.signal,
    draining: draining.signal,
  };
  let dials = 0n;
  const attachment = attachAgent({
    agent: {
      linkAs: (attachCount) => openLink(offered, attachCount),
      draining: draining.signal,
      async close() {
        draining.abort(new Error("the device leaves"));
        await executions.close();
        closed.abort(new Error("the device has gone"));
      },
    },
    count: { next: () => Promise.resolve(++dials) },
    urls: [url],
    transportTo: transportsToRegistry(enrolled.tls, DEFAULT_TRUST_DOMAIN),
    logger: workshop.logger,
  });
  return {
    get isAttached() {
      return attachment.isAttached;
    },
    get dials() {
      return Number(dials);
    },
    close: attachment.close,
  };
}

function executionsOf({ key, manifest, grantKeys }: Enrolled, workshop: Workshop): Executions {
  const { ledger, outputs, executor, roots, undo, offered } = workshop;
  const deviceId = deviceIdOf(key);
  const signer = createBatchSigner({ key, statementType: RECEIPT_TYPE });
  const issuer = { signer, deviceId, manifestDigest: () => manifest.digest };
  return createExecutions({
    ledger,
    outputs,
    endings: createEndings({ ledger, issuer, now: Date.now }),
    slots: createSlots(64),
    executor,
    roots,
    undo,
    hosts: NO_HOSTS,
    secrets: { read: () => undefined },
    now: Date.now,
    onUnexpected: (_, error) => {
      throw error;
    },
    verifier: createBatchVerifier({ keyring: createKeyring(grantKeys), statementType: GRANT_TYPE }),
    deviceId,
    offered: () => ({ ...offered, manifestDigest: manifest.digest }),
  });
}
