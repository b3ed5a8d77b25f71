import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { DeviceAgentService, ExecutionFinishedSchema } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ManifestSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { ExecutionOutcome, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import { createKeyring, generateSigningKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import { RECEIPT_TYPE } from "../../lib/sign/payload-types.ts";
import { builtInTools } from "../../lib/toolschema/catalog-file.ts";
import { createTestGrants } from "./testing/grants.ts";
import { livingIn } from "./testing/living.ts";
import { openTestLink } from "./testing/test-link.ts";

const MAIN = fileURLToPath(new URL("./main.ts", import.meta.url));
const key = generateSigningKey();
let folder: string;
let token: string;
const opened: { kill(): Promise<void> }[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-crash-"));
  await mkdir(join(folder, "work"));
  token = createTokenFile(join(folder, "tokens.json")).issueToken({ name: "test", roles: [Role.SERVICE] }).token;
});

afterEach(async () => {
  for (const one of opened.splice(0)) await one.kill();
  await rm(folder, { recursive: true });
});

/** A device agent in a process of its own, and a client of it. */
async function startAgent() {
  const child = spawn(process.execPath, [MAIN], {
    stdio: ["ignore", "inherit", "pipe"],
    env: {
      ...process.env,
      REEVE_DEVICE_PORT: "0",
      REEVE_DEVICE_STATE_DIR: join(folder, "state"),
      REEVE_DEVICE_WRITE_ROOTS: join(folder, "work"),
      REEVE_TOKENS_FILE: join(folder, "tokens.json"),
      REEVE_GRANT_KEY: Buffer.from(key.raw).toString("base64"),
    },
  });
  const transport = createServiceTransport({ baseUrl: await urlOf(child), token, protocol: "grpc" });
  const client = createClient(DeviceAgentService, transport);
  const agent = { child, client, kill: () => kill(child, transport) };
  opened.push(agent);
  return agent;
}

/** The address in the line that says that it is ready. */
async function urlOf(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error("the child has no standard error");
  const said: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    said.push(line);
    const { url } = (line.startsWith("{") ? JSON.parse(line) : {}) as { url?: string };
    if (url !== undefined) return url;
  }
  throw new Error(`the agent did not start:\n${said.join("\n")}`);
}

async function kill(child: ChildProcess, transport: ServiceTransport): Promise<void> {
  transport.close();
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function grantsFor({ client }: Awaited<ReturnType<typeof startAgent>>) {
  const { manifest } = await client.getManifest({});
  const payload = manifest?.payload ?? new Uint8Array();
  const { deviceId, publicKey } = fromBinary(ManifestSchema, payload);
  const grants = createTestGrants({ deviceId, manifestDigest: sha256Hex(payload), tools: builtInTools }, { key });
  const keyring = createKeyring([verifyKeyFromRaw(publicKey)]);
  return { grants, receipts: createBatchVerifier({ keyring, statementType: RECEIPT_TYPE }) };
}

test("what a call had printed when the agent was killed is read from the next one", async () => {
  const first = await startAgent();
  const { grants } = await grantsFor(first);
  const args = { argv: ["sh", "-c", "echo $$; seq 100000; sleep 0.2; echo last; exec sleep 1000"] };
  const link = openTestLink(first.client);
  link.send({ case: "execute", value: await grants.start({ tool: "exec", args, callId: "call-1" }) });
  let printed = "";
  while (!printed.endsWith("last\n")) printed += Buffer.from((await link.next("output")).data).toString();
  // A quarter of a second is what may be lost, and a busy machine takes its time to write.
  await sleep(2000);
  await first.kill();

  const second = openTestLink((await startAgent()).client);
  second.send({ case: "readOutput", value: { callId: "call-1", readId: 7n, fromSequence: 0, maxBytes: 1024 * 1024 } });
  const { readId, chunks, summary } = await second.next("outputRead");
  expect(Buffer.concat(chunks.map(({ data }) => data)).toString()).toBe(printed);
  expect([readId, summary?.open, summary?.chunks]).toEqual([7n, false, chunks.length]);
});

test("a call that the agent died in is INTERRUPTED, with a signed receipt, and is never run again", async () => {
  const first = await startAgent();
  const { grants, receipts } = await grantsFor(first);
  const args = { argv: ["sh", "-c", "echo ran >> marker; echo $$; exec sleep 1000"] };
  const start = await grants.start({ tool: "exec", args, callId: "call-1" });
  const link = openTestLink(first.client);
  link.send({ case: "execute", value: start });
  const group = Number(Buffer.from((await link.next("output")).data).toString());
  await first.kill();
  // The program outlives an agent that is killed; the test must not leave it behind.
  if (livingIn(group).length > 0) process.kill(-group, "SIGKILL");

  const second = await startAgent();
  const { running, finished } = await second.client.getExecution({ callId: "call-1" });
  expect(running).toBe(false);
  expect(finished).toMatchObject({ outcome: ExecutionOutcome.INTERRUPTED, error: { reason: ErrorReason.INTERRUPTED } });
  const receipt = receipts.verify(finished?.receipt);
  if (!receipt.ok) throw new Error(receipt.kind);
  expect(fromBinary(ReceiptSchema, receipt.statement)).toMatchObject({
    callId: "call-1",
    outcome: ExecutionOutcome.INTERRUPTED,
  });

  const again = await second.client.execute({ command: start });
  if (finished === undefined || again.finished === undefined) throw new Error("there is no end");
  expect(toBinary(ExecutionFinishedSchema, again.finished)).toEqual(toBinary(ExecutionFinishedSchema, finished));
  const replayed = await second.client.execute({ command: { ...start, callId: "call-2" } });
  expect(replayed.finished?.error?.reason).toBe(ErrorReason.GRANT_REPLAYED);
  expect(await readFile(join(folder, "work", "marker"), "utf8")).toBe("ran\n");
});

test("what was reported as finished is still known after the agent was killed", async () => {
  const first = await startAgent();
  const { grants } = await grantsFor(first);
  const callIds = Array.from({ length: 50 }, (_, index) => `call-${index}`);
  const starts = await Promise.all(
    callIds.map((callId) => grants.start({ tool: "device.ping", args: { text: callId }, callId })),
  );
  const reported = await Promise.all(starts.map((start) => first.client.execute({ command: start })));
  await first.kill();
  const second = await startAgent();
  const known = await Promise.all(callIds.map((callId) => second.client.getExecution({ callId })));
  expect(known.map(({ finished }) => finished)).toEqual(reported.map(({ finished }) => finished));
});
