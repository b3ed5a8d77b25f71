import { createHash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import {
  DeviceAgentService,
  type ExecuteCommand,
  type ExecutionFinished,
  ExecutionFinishedSchema,
} from "../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { Mode } from "../gen/ts/reeve/device/v1/device_pb.ts";
import { type AnnouncedTools, ManifestSchema } from "../gen/ts/reeve/device/v1/manifest_pb.ts";
import { ExecutionOutcome, type Receipt, ReceiptSchema } from "../gen/ts/reeve/device/v1/receipt_pb.ts";
import { createBatchSigner } from "../lib/sign/batch.ts";
import { signEnvelope } from "../lib/sign/dsse.ts";
import { generateSigningKey, type SigningKey } from "../lib/sign/keys.ts";

/** What a device that an attacker controls says about a call. */
export interface Lie {
  /** Changes the receipt before it is signed. */
  receipt?: Partial<Receipt>;
  /** Changes what is sent beside it. */
  finished?: Partial<ExecutionFinished>;
  /** Signs with this key instead of the device's own. */
  signer?: SigningKey;
  /** Answers no sooner. */
  until?: Promise<void>;
  /** Hangs up instead of answering. */
  hangUp?: boolean;
}

/** A device agent that holds a real key and a real manifest, and lies about what it did. Never runs anything. */
export function lyingDevice(
  name: string,
  announced: readonly AnnouncedTools[] = [],
  capabilities: readonly string[] = ["device.ping"],
): {
  routes(router: ConnectRouter): void;
  lie: Lie;
  starts: ExecuteCommand[];
  key: SigningKey;
} {
  const key = generateSigningKey();
  const manifest = create(ManifestSchema, {
    version: 1,
    deviceId: `dev-${key.keyId}`,
    name,
    mode: Mode.USER,
    capabilities: [...capabilities],
    announced: [...announced],
    publicKey: key.raw,
  });
  const envelope = signEnvelope(key, "application/vnd.reeve.manifest.v1", toBinary(ManifestSchema, manifest));
  const device = {
    lie: {} as Lie,
    starts: [] as ExecuteCommand[],
    key,
    routes(router: ConnectRouter) {
      router.service(DeviceAgentService, {
        async *link(requests) {
          yield { frame: { events: [{ event: { case: "hello" as const, value: { manifest: envelope } } }] } };
          for await (const { frame } of requests) {
            for (const { command } of frame?.commands ?? []) {
              if (command.case !== "execute") continue;
              device.starts.push(command.value);
              if (device.lie.hangUp === true) return;
              const value = await answer(command.value, device.lie, key, manifest.deviceId);
              yield { frame: { events: [{ event: { case: "finished" as const, value } }] } };
            }
          }
        },
      });
    },
  };
  return device;
}

async function answer(start: ExecuteCommand, lie: Lie, key: SigningKey, deviceId: string): Promise<ExecutionFinished> {
  await lie.until;
  const output = Buffer.from('{"text":"pong"}');
  const receipt = create(ReceiptSchema, {
    version: 1,
    callId: start.callId,
    deviceId,
    tool: start.tool,
    argsDigest: createHash("sha256").update(start.arguments).digest("hex"),
    outcome: ExecutionOutcome.SUCCEEDED,
    outputDigest: createHash("sha256").update(output).digest("hex"),
    outputBytes: output.length,
    ...lie.receipt,
  } as Receipt);
  const signer = createBatchSigner({ key: lie.signer ?? key, statementType: "application/vnd.reeve.receipt.v1" });
  return create(ExecutionFinishedSchema, {
    callId: start.callId,
    outcome: ExecutionOutcome.SUCCEEDED,
    output,
    receipt: await signer.sign(toBinary(ReceiptSchema, receipt)),
    ...lie.finished,
  } as ExecutionFinished);
}
