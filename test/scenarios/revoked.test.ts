import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile, type TokenFile } from "../../lib/auth/token-file.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { openCallStream } from "../../testkit/call-stream.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { isRunning } from "../../testkit/programs.ts";

/** A token that is revoked as `reeve token revoke` does it: by another process, in the file. */
let plane: ControlPlane;
let operator: Caller;
let tokens: TokenFile;
let agent: Caller;
let agentId: string;
beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  tokens = createTokenFile(join(plane.folder, "tokens.json"));
});
afterAll(() => plane.close());
/** A new token, as soon as the registry and policy know it. */
async function issue(role: Role) {
  const { token, entry } = tokens.issueToken({ name: "to be revoked", roles: [role] });
  const caller = callerOf(plane, token);
  await eventually(() => caller.registry.listDevices({}));
  if (role === Role.OPERATOR) await eventually(() => caller.approvals.listApprovals({}));
  return { caller, id: entry.id };
}
beforeEach(async () => {
  ({ caller: agent, id: agentId } = await issue(Role.AGENT));
});

const refusal = async (run: Promise<unknown>) => {
  const error = await run.then(() => undefined, ConnectError.from);
  return [error?.code, faultDetail(error)?.reason, faultDetail(error)?.metadata.why];
};
const REVOKED = [Code.Unauthenticated, ErrorReason.TOKEN_REFUSED, "revoked"];

async function ended(callId: string): Promise<CompleteCall> {
  return eventually(async () => {
    const { call } = await operator.registry.getCall({ callId });
    if (call === undefined || !isEnd(completeCall(call).status.state)) throw new Error("it has not ended");
    return completeCall(call);
  });
}

test("a stream of calls ends, and nothing that is asked on it then runs", async () => {
  const stream = openCallStream(agent.registry);
  stream.call({ device: "this", tool: "exec", params: { argv: ["uname"] }, callId: "revoked-before" });
  expect((await stream.ended("revoked-before")).status.state).toBe(CallState.SUCCEEDED);
  tokens.revokeToken(agentId);
  const over = refusal(stream.ended("revoked-after"));
  await eventually(async () => expect(await refusal(agent.registry.listDevices({}))).toContain(Code.Unauthenticated));
  // What a stream's token was found to be counts for 100 ms (lib/server/credentials.ts).
  await sleep(150);
  stream.call({ device: "this", tool: "exec", params: { argv: ["uname"] }, callId: "revoked-after" });
  expect(await over).toEqual(REVOKED);
  await expect(operator.registry.getCall({ callId: "revoked-after" })).rejects.toMatchObject({ code: Code.NotFound });
});

test("what runs for it ends on the device, and what is held is not waited for; both say why", async () => {
  const pidFile = join(plane.work, "revoked.pid");
  const mark = join(plane.work, "revoked.mark");
  const program = `echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; exec sleep 600`;
  const exec = async (...argv: string[]) => {
    const { call } = await agent.registry.callTool({ device: "this", tool: "exec", params: { argv }, noWait: true });
    return call?.id ?? "";
  };
  const running = await exec("sh", "-c", program);
  await approveCall(operator, running);
  const pid = await eventually(async () => Number(await readFile(pidFile, "utf8")));
  const held = await exec("touch", mark);
  // By the end of the call, or by the end of the wait for it, whichever comes first.
  const waiting = agent.registry.callTool({ device: "this", tool: "exec", params: { argv: ["touch", mark] } }).then(
    ({ call }) => call?.status?.error?.reason,
    (error: unknown) => faultDetail(error)?.reason,
  );

  tokens.revokeToken(agentId);
  for (const callId of [running, held]) {
    const call = await ended(callId);
    expect([callId, call.status.state, call.status.error?.reason, call.status.error?.metadata.why]).toEqual([
      callId,
      CallState.CANCELED,
      ErrorReason.TOKEN_REFUSED,
      "revoked",
    ]);
    expect(call.status.errorMessage).toContain("the token that asked for this was revoked");
    expect(call.status.receipt !== undefined).toBe(callId === running);
  }
  expect(await waiting).toBe(ErrorReason.TOKEN_REFUSED);
  await eventually(async () => expect(await isRunning(pid)).toBe(false));
  expect(existsSync(mark)).toBe(false);
});

test("a watch of approvals with it receives no more of them", async () => {
  const { caller, id } = await issue(Role.OPERATOR);
  const watch = caller.approvals.watchApprovals({})[Symbol.asyncIterator]();
  const next = refusal(watch.next());
  tokens.revokeToken(id);
  expect(await next).toEqual(REVOKED);
});
