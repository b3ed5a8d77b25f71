import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, type JsonObject, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Client, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Signed, SignedSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  DeviceAgentService,
  type ExecuteCommand,
  type ExecutionFinished,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ManifestSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { ExecutionOutcome, type Receipt, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { type BatchVerifier, createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import { createKeyring, generateSigningKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import { builtInTools } from "../../lib/toolschema/catalog-file.ts";
import { createTestGrants, type TestGrants } from "../../services/device-agent/testing/grants.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";

const GRANT = "application/vnd.reeve.grant.v1";
const RECEIPT = "application/vnd.reeve.receipt.v1";
const MINUTE = 60_000;

let folder: string;
let agent: ServiceProcess;
let device: Client<typeof DeviceAgentService>;
let grants: TestGrants;
let receipts: BatchVerifier;
let deviceId: string;

/** The file that a call of this test would make, and that call. */
let mark: string;
let call: { tool: string; args: JsonObject; callId: string };
let count = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-grants-"));
  const [port = 0] = await freePorts(1);
  const tokensFile = join(folder, "tokens.json");
  const { token } = createTokenFile(tokensFile).issueToken({ name: "control plane", roles: [Role.SERVICE] });
  await mkdir(join(folder, "work"));
  const key = generateSigningKey();
  agent = await startServiceProcess("device", port, {
    REEVE_DEVICE_PORT: String(port),
    REEVE_DEVICE_STATE_DIR: join(folder, "device"),
    REEVE_DEVICE_MODE: "all",
    REEVE_DEVICE_WRITE_ROOTS: join(folder, "work"),
    REEVE_GRANT_KEY: Buffer.from(key.raw).toString("base64"),
    REEVE_TOKENS_FILE: tokensFile,
  });
  device = createClient(DeviceAgentService, createServiceTransport({ baseUrl: agent.url, token }));
  const payload = (await device.getManifest({})).manifest?.payload ?? new Uint8Array();
  const manifest = fromBinary(ManifestSchema, payload);
  deviceId = manifest.deviceId;
  grants = createTestGrants({ deviceId, manifestDigest: sha256Hex(payload), tools: builtInTools }, { key });
  const keyring = createKeyring([verifyKeyFromRaw(manifest.publicKey)]);
  receipts = createBatchVerifier({ keyring, statementType: RECEIPT });
});
afterAll(async () => {
  await agent.stop();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  count += 1;
  mark = join(folder, "work", `mark-${count}`);
  call = { tool: "exec", args: { argv: ["touch", mark] }, callId: `call-${count}` };
});

test("the grant that fits runs the call", async () => {
  const { finished, receipt } = await execute(await grants.start(call));
  expect(finished.outcome).toBe(ExecutionOutcome.SUCCEEDED);
  expect(receipt).toMatchObject({ callId: call.callId, deviceId, outcome: ExecutionOutcome.SUCCEEDED });
  expect(existsSync(mark)).toBe(true);
});

/** A start that the device has to refuse, whatever else is right about it. */
interface Bad {
  name: string;
  reason: ErrorReason;
  start(): Promise<ExecuteCommand>;
}

const changed = (changes: MessageInitShape<typeof GrantSchema>) => grants.start(call, changes);
const withGrant = async (grant: Signed): Promise<ExecuteCommand> => ({ ...(await grants.start(call)), grant });
const grantFor = async (other: Partial<typeof call>) => grants.sign(grants.fields({ ...call, ...other }));
const time = (fromMs: number, untilMs: number) => ({
  notBefore: timestampFromMs(Date.now() + fromMs),
  expireTime: timestampFromMs(Date.now() + untilMs),
});

const FORGED: readonly Bad[] = [
  {
    name: "signed by another key",
    reason: ErrorReason.GRANT_INVALID,
    start: async () => {
      const signer = createBatchSigner({ key: generateSigningKey(), statementType: GRANT });
      return withGrant(await signer.sign(toBinary(GrantSchema, grants.fields(call))));
    },
  },
  {
    name: "signed by the right key as something else",
    reason: ErrorReason.GRANT_INVALID,
    start: async () => {
      const signer = createBatchSigner({ key: grants.key, statementType: RECEIPT });
      return withGrant(await signer.sign(toBinary(GrantSchema, grants.fields(call))));
    },
  },
  {
    name: "changed after it was signed",
    reason: ErrorReason.GRANT_INVALID,
    start: async () => {
      const signed = await grantFor({ args: { argv: ["uname"] } });
      return withGrant({ ...signed, statement: toBinary(GrantSchema, grants.fields(call)) });
    },
  },
  {
    name: "empty",
    reason: ErrorReason.GRANT_INVALID,
    start: () => withGrant(create(SignedSchema)),
  },
  {
    name: "valid for longer than a grant may be",
    reason: ErrorReason.GRANT_INVALID,
    start: () => changed(time(-1000, 6 * MINUTE)),
  },
];

const MISUSED: readonly Bad[] = [
  {
    name: "other arguments",
    reason: ErrorReason.GRANT_WRONG_ARGUMENTS,
    start: async () => withGrant(await grantFor({ args: { argv: ["touch", `${mark}-other`] } })),
  },
  {
    name: "another tool",
    reason: ErrorReason.GRANT_WRONG_ARGUMENTS,
    start: () => changed({ tool: "shell.eval" }),
  },
  {
    name: "another version of the tool",
    reason: ErrorReason.GRANT_WRONG_ARGUMENTS,
    start: () => changed({ schemaDigest: "0".repeat(64) }),
  },
  {
    name: "another device",
    reason: ErrorReason.GRANT_WRONG_DEVICE,
    start: () => changed({ deviceId: "dev-0123456789abcdef" }),
  },
  {
    name: "an earlier manifest of the device",
    reason: ErrorReason.MANIFEST_REFUSED,
    start: () => changed({ manifestDigest: "0".repeat(64) }),
  },
  { name: "an earlier time", reason: ErrorReason.GRANT_EXPIRED, start: () => changed(time(-3 * MINUTE, -MINUTE)) },
  { name: "a later time", reason: ErrorReason.GRANT_EXPIRED, start: () => changed(time(MINUTE, 2 * MINUTE)) },
  {
    name: "another call",
    reason: ErrorReason.GRANT_REPLAYED,
    start: async () => withGrant(await grantFor({ callId: `${call.callId}-other` })),
  },
];

describe.each([
  ["a forged grant", FORGED],
  ["a grant for something else", MISUSED],
])("the device refuses %s:", (_, rows) => {
  test.each(rows)("$name", async ({ reason, start }) => {
    const { finished, receipt } = await execute(await start());
    expect(finished).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason } });
    expect(receipt).toMatchObject({ callId: call.callId, deviceId, outcome: ExecutionOutcome.REFUSED, reason });
    expect(receipt.startTime).toBeUndefined();
    expect(existsSync(mark)).toBe(false);
    // No caller can use a call's id up by sending rubbish under it.
    expect(await device.getExecution({ callId: call.callId }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
    const good = await execute(await grants.start(call));
    expect(good.finished.outcome).toBe(ExecutionOutcome.SUCCEEDED);
  });
});

describe("a grant works once:", () => {
  test("the same start again returns the stored end and runs nothing", async () => {
    const lines = { tool: "exec", args: { argv: ["tee", "-a", mark], stdin: "once\n" }, callId: call.callId };
    const start = await grants.start(lines);
    const [first, again] = [await execute(start), await execute(start)];
    expect(toBytes(again.receipt)).toEqual(toBytes(first.receipt));
    expect(await readFile(mark, "utf8")).toBe("once\n");
  });

  test("a used grant's id in a new grant is refused", async () => {
    const { grantId } = grants.fields(call);
    await execute(await grants.start(call, { grantId }));
    await rm(mark);
    const { finished } = await execute(await grants.start({ ...call, callId: `${call.callId}-again` }, { grantId }));
    const error = { reason: ErrorReason.GRANT_REPLAYED, metadata: { jti: grantId } };
    expect(finished).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error });
    expect(existsSync(mark)).toBe(false);
  });

  test("a used call id with another grant for other arguments is refused", async () => {
    await execute(await grants.start(call));
    const other = { ...call, args: { argv: ["touch", `${mark}-other`] } };
    const { finished } = await execute(await grants.start(other));
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.REFUSED,
      error: { reason: ErrorReason.CALL_ID_REUSED },
    });
    expect(existsSync(`${mark}-other`)).toBe(false);
  });
});

test("a good grant does not lift the device's own block", async () => {
  const command = `touch ${mark}; rm -rf /`;
  const { finished } = await execute(await grants.start({ tool: "shell.eval", args: { command } }));
  expect(finished).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.POLICY_BLOCKED } });
  expect(existsSync(mark)).toBe(false);
});

/** Runs a call and reads its receipt, which has to be signed by the device whatever came of the call. */
async function execute(start: ExecuteCommand): Promise<{ finished: ExecutionFinished; receipt: Receipt }> {
  const { finished } = await device.execute({ command: start });
  const verified = receipts.verify(finished?.receipt);
  if (finished === undefined || !verified.ok) throw new Error("there is no receipt that the device has signed");
  return { finished, receipt: fromBinary(ReceiptSchema, verified.statement) };
}

function toBytes(receipt: Receipt): Uint8Array {
  return toBinary(ReceiptSchema, receipt);
}
