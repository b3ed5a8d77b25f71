import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

const RULES = `version: 1
rules:
  - id: brief
    effect: allow
    tools: [exec]
    obligations: { max_run: 200ms }
    when: '"agent" in principal.roles'
    message: Briefly.
`;

let folder: string;
let stack: TestStack;
let agent: RegistryClient;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-max-run-"));
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, RULES);
  stack = await startTestStack({ policyFile });
  const { registry, tokens } = stack;
  agent = registryClient(createServiceTransport({ baseUrl: registry.url, token: tokens.agent, protocol: "grpc" }));
});
afterAll(async () => {
  await stack.close();
  await rm(folder, { recursive: true, force: true });
});

test("a program that no person approved is stopped at the rule's max_run, and its end and receipt say so", async () => {
  const { call } = await agent.callTool({
    tool: "exec",
    params: { argv: ["sleep", "3600"], timeoutMs: 3_600_000 },
  });
  expect(call?.status).toMatchObject({
    state: CallState.TIMED_OUT,
    error: { reason: ErrorReason.TIMED_OUT, metadata: { timeout_ms: "200", max_run_ms: "200" } },
    errorMessage: expect.stringMatching(
      /without a person's approval policy lets it run for 200 ms \(max_run\)/,
    ) as string,
  });
  expect(fromBinary(ReceiptSchema, call?.status?.receipt?.statement ?? new Uint8Array()).timeout).toEqual(
    durationFromMs(200),
  );
});
