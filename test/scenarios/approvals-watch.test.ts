import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runCli } from "../../cli/run-cli.ts";
import { createFakeContext } from "../../cli/testing/fake-context.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

let plane: ControlPlane;
let home: string;
let agent: Caller;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "reeve-watch-"));
  plane = await startControlPlane();
  agent = callerOf(plane, plane.tokens.agent);
});
afterAll(async () => {
  await plane.close();
  await rm(home, { recursive: true });
});

const ASK = "Approve? [y/N/d(etails)] ";
const hold = async (callId: string) => {
  const { call } = await agent.registry.callTool({
    device: "this",
    tool: "exec",
    params: { argv: ["touch", join(plane.work, callId)] },
    callId,
    noWait: true,
  });
  return call?.status?.approval?.id ?? "";
};

test("watching goes on over a restart, takes back what is moot, and ends when the token is refused", async () => {
  const tokens = createTokenFile(join(plane.folder, "tokens.json"));
  const { token, entry } = tokens.issueToken({ name: "watcher", roles: [Role.OPERATOR] });
  await eventually(() => callerOf(plane, token).approvals.listApprovals({}));
  const context = createFakeContext({ env: { ...shellOf(plane, token, home), NO_COLOR: "1" }, terminal: true });
  const questions = () => context.stderrText().split(ASK).length - 1;
  const ended = runCli(["approval", "watch"], context);
  const moot = await hold("watch-moot");
  await context.shown("stderr", ASK);

  await plane.processes.policy.kill();
  await context.shown("stderr", "no connection to policy");
  await agent.registry.cancelCall({ callId: "watch-moot" });
  await plane.processes.policy.start();
  await context.shown("stderr", "connected to policy again");
  await context.shown("stdout", `${moot} canceled`);
  await context.shown("stderr", `${moot} is not asked any more: the call ended: CANCELED.`);

  const wanted = await hold("watch-wanted");
  await eventually(() => expect(questions()).toBe(2));
  context.stdin.write("y\n");
  await context.shown("stdout", `${wanted} approved by`);
  await eventually(async () => {
    const { call } = await agent.registry.getCall({ callId: "watch-wanted" });
    expect(call?.status?.state).toBe(CallState.SUCCEEDED);
  });

  tokens.revokeToken(entry.id);
  expect(await ended).toBe(3);
  expect(context.stderrText()).toContain("the token was revoked");
});

test("where nothing answers at the beginning it ends at once, and says so", async () => {
  const env = { ...shellOf(plane, plane.tokens.operator, home), REEVE_POLICY_URL: "http://127.0.0.1:9" };
  const context = createFakeContext({ env });
  expect(await runCli(["approval", "watch"], context)).toBe(5);
});
