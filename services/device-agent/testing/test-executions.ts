import { createSecretKey, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import type { ExecutionFinished, ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type Receipt, ReceiptSchema } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { NO_HOSTS } from "../../../lib/hosts/host-list.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { createBatchSigner } from "../../../lib/sign/batch.ts";
import { createBatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { createKeyring, generateSigningKey } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE, RECEIPT_TYPE } from "../../../lib/sign/payload-types.ts";
import { DEFAULT_OUTPUT_LIMITS } from "../config.ts";
import { createEndings } from "../execute/endings.ts";
import { createExecutions, type Executions } from "../execute/executions.ts";
import type { OwnerDemands } from "../execute/prepare.ts";
import { createSlots } from "../execute/slots.ts";
import type { Watcher } from "../execute/watcher.ts";
import { createLocalExecutor } from "../executor/local.ts";
import { type Ledger, openLedger } from "../ledger/ledger.ts";
import { type OutputLimits, openOutputFolder } from "../output/output-folder.ts";
import { createOutputs } from "../output/outputs.ts";
import { createRoots } from "../roots/roots.ts";
import type { DeviceTool } from "../tools/tool.ts";
import { openUndoJournal } from "../undo/journal.ts";
import { createTestGrants, type TestGrants } from "./grants.ts";

export interface TestDevice extends AsyncDisposable {
  executions: Executions;
  ledger: Ledger;
  grants: TestGrants;
  /** What went wrong unexpectedly. */
  unexpected: unknown[];
  /** A folder that tools may use, with the ledger beside it. */
  work: string;
  /** The receipt in an end, after its signature was checked. */
  receiptOf(finished: ExecutionFinished): Receipt;
}

export interface TestDeviceOptions {
  tools: DeviceTool[];
  /** Tools of the program that the device does not offer. */
  notOffered?: DeviceTool[];
  maxRunning?: number;
  /** Default none. */
  operatorPlaces?: number;
  now?: () => number;
  /** Other limits for what calls print. */
  output?: Partial<OutputLimits>;
  /** What the owner's manifest demands. Default nothing: there is none. */
  owner?: OwnerDemands;
  /** Wraps the ledger, to fail where a test wants it. */
  ledger?: (ledger: Ledger) => Ledger;
}

/** The calls of a device with the given tools: real ledger, grants and receipts, no network. */
export async function openTestDevice(options: TestDeviceOptions): Promise<TestDevice> {
  const { tools, notOffered = [], now = Date.now } = options;
  const folder = await mkdtemp(join(tmpdir(), "reeve-device-"));
  const sealer = sealerWith(createSecretKey(randomBytes(32)));
  const opened = await openLedger(join(folder, "ledger.db"), sealer);
  const undo = openUndoJournal({ folder: join(folder, "undo"), sealer, now });
  const ledger = options.ledger?.(opened) ?? opened;
  const key = generateSigningKey();
  const deviceId = `dev-${key.keyId}`;
  const manifestDigest = sha256Hex(randomUUID());
  const known = new Map([...tools, ...notOffered].map(({ spec }) => [spec.name, spec]));
  const grants = createTestGrants({ deviceId, manifestDigest, tools: known }, { now });
  const signer = createBatchSigner({ key, statementType: RECEIPT_TYPE });
  const issuer = { signer, deviceId, manifestDigest: () => manifestDigest };
  const roots = createRoots({ read: [], write: [folder], workDir: folder });
  const unexpected: unknown[] = [];
  const onError = (error: unknown): void => void unexpected.push(error);
  const limits = { ...DEFAULT_OUTPUT_LIMITS, ...options.output };
  const outputs = createOutputs(openOutputFolder(join(folder, "output"), limits, { now, onError }), sealer, onError);
  const executions = createExecutions({
    ledger,
    outputs,
    endings: createEndings({ ledger, issuer, now }),
    slots: createSlots(options.maxRunning ?? 64, options.operatorPlaces),
    executor: createLocalExecutor({ env: process.env, writeRoots: [folder], killGraceMs: 200 }),
    roots,
    undo,
    hosts: NO_HOSTS,
    secrets: { read: () => undefined },
    now,
    onUnexpected: (_, error) => unexpected.push(error),
    verifier: createBatchVerifier({ keyring: createKeyring([grants.key]), statementType: GRANT_TYPE }),
    deviceId,
    offered: () => ({
      tools: new Map(tools.map((tool) => [tool.spec.name, tool])),
      known,
      unavailable: new Map(),
      manifestDigest,
      owner: options.owner,
    }),
  });
  const receipts = createBatchVerifier({ keyring: createKeyring([key]), statementType: RECEIPT_TYPE });
  return {
    executions,
    ledger,
    grants,
    unexpected,
    work: folder,
    receiptOf({ receipt }) {
      const result = receipts.verify(receipt);
      if (!result.ok) throw new Error(`the receipt cannot be trusted: ${result.kind}`);
      return fromBinary(ReceiptSchema, result.statement);
    },
    async [Symbol.asyncDispose]() {
      await executions.close();
      await opened.close();
      roots[Symbol.dispose]();
      undo[Symbol.dispose]();
      await rm(folder, { recursive: true });
    },
  };
}

/** A watcher that keeps what it receives. */
export interface TestWatcher extends Watcher {
  outputs: ExecutionOutput[];
  /** Resolves with the end; rejects where the call was lost. */
  end: Promise<ExecutionFinished>;
}

/** Makes a watcher for one call. */
export function createTestWatcher(): TestWatcher {
  const outputs: ExecutionOutput[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<ExecutionFinished>();
  return {
    outputs,
    end: promise,
    output: (output) => outputs.push(output),
    follows: () => true,
    room: () => undefined,
    finished: resolve,
    lost: (_, error) => reject(error),
  };
}
