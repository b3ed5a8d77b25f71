import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ExecutionFinished,
  ExecutionFinishedSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ReceiptSchema } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import type { BatchSigner } from "../../../lib/sign/batch.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { CallEnd } from "./call-end.ts";

/** The version of the receipt's form. */
const RECEIPT_VERSION = 1;

/** What all receipts of one device have in common. */
export interface ReceiptIssuer {
  signer: BatchSigner;
  deviceId: string;
  /** The digest of the active manifest, in hex. */
  manifestDigest(): string;
}

/** What a receipt says of its call besides the end. */
export interface ReceiptSubject {
  callId: string;
  /** Empty where the grant could not be read. */
  grantId: string;
  tool: string;
  argsDigest: string;
  /** Undefined where nothing ran. */
  startMs: number | undefined;
  endMs: number;
  /** The longest that it was let run, in milliseconds; 0 where nothing ran or that is not known. */
  timeoutMs: number;
}

/** Signs the receipt of a call's end and puts both together as the event that every asker gets. */
export async function sealEnd(
  issuer: ReceiptIssuer,
  subject: ReceiptSubject,
  end: CallEnd,
): Promise<ExecutionFinished> {
  const { outcome, output, error, message, sandbox } = end;
  const receipt = create(ReceiptSchema, {
    version: RECEIPT_VERSION,
    callId: subject.callId,
    grantId: subject.grantId,
    deviceId: issuer.deviceId,
    tool: subject.tool,
    argsDigest: subject.argsDigest,
    outcome,
    reason: error?.reason ?? ErrorReason.UNSPECIFIED,
    outputDigest: output.length === 0 ? "" : sha256Hex(output),
    outputBytes: output.length,
    manifestDigest: issuer.manifestDigest(),
    sandbox: sandbox ?? SandboxLevel.UNSPECIFIED,
    endTime: timestampFromMs(subject.endMs),
    ...(subject.timeoutMs > 0 && { timeout: durationFromMs(subject.timeoutMs) }),
    ...startTime(subject.startMs),
  });
  const signed = await issuer.signer.sign(toBinary(ReceiptSchema, receipt));
  const finished = create(ExecutionFinishedSchema, {
    callId: subject.callId,
    outcome,
    output,
    message,
    receipt: signed,
  });
  if (error !== undefined) finished.error = error;
  return finished;
}

function startTime(startMs: number | undefined): { startTime: Timestamp } | undefined {
  return startMs === undefined ? undefined : { startTime: timestampFromMs(startMs) };
}
