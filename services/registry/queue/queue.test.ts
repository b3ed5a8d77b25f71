import { create } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { TokenStatus } from "../../../lib/auth/token-status.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { type TestCallFields, testCall } from "../../../testkit/test-call.ts";
import type { CallQueue } from "../calls/call-queue.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createPresence } from "./presence.ts";
import { createQueue } from "./queue.ts";
import { createQueueStore } from "./store.ts";

let db: Database<RegistryTables>;
let writes: GroupCommit<RegistryTables>;
let queue: CallQueue;
let device: KnownDevice | undefined;
let status: TokenStatus;
let nowMs: number;
beforeEach(async () => {
  db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
  writes = createGroupCommit(db);
  const tools = new Map([...builtInTools()].map(([name, tool]) => [name, { ...tool, requiresApproval: false }]));
  device = {
    id: "dev-1",
    name: "nas",
    online: true,
    tools,
    labels: {},
    unavailable: [],
    manifest: { unavailable: [], readRoots: [], writeRoots: [] },
    manifestDigest: "m2",
  } as unknown as KnownDevice;
  status = { valid: true, roles: undefined };
  nowMs = 1_000;
  const now = () => nowMs;
  queue = createQueue({
    store: createQueueStore(db, writes),
    presence: createPresence({ isOnline: () => device?.online === true, now, pollMs: 1 }),
    directory: { byId: () => device },
    tokenStatuses: () => status,
    now,
  });
});
afterEach(async () => {
  await writes.close();
  await db.destroy();
});

const call = (changes: TestCallFields = {}) =>
  testCall({
    id: "c",
    deviceId: "dev-1",
    tool: "exec",
    principalId: "aaaaaaaaaaaa",
    createTime: timestampFromMs(1_000),
    queueExpireTime: timestampFromMs(61_000),
    ...changes,
  });
const asked = create(DecisionRequestSchema, {
  principal: { id: "aaaaaaaaaaaa", roles: [Role.AGENT] },
  timeout: durationFromMs(7),
});
const args = Buffer.from("{}");
const { signal } = new AbortController();

describe("a call", () => {
  it("is queued only where its caller lets it wait and its device is offline", () => {
    expect(queue.mustQueue(call())).toBe(false);
    if (device !== undefined) device.online = false;
    expect(queue.mustQueue(call())).toBe(true);
    const never = call();
    delete never.spec.queueExpireTime;
    expect(queue.mustQueue(never)).toBe(false);
    device = undefined;
    expect(queue.mustQueue(call())).toBe(true);
  });

  it("is asked about again with what was asked then, what is known now, and a number that rises", async () => {
    await queue.note(call(), asked);
    nowMs = 5_000;
    const queued = call({ approval: { id: "apr-1" } });
    const first = await queue.next(queued, args, signal);
    expect(first).toMatchObject({
      kind: "ask",
      question: {
        callId: "c",
        delivery: 1,
        approvalId: "apr-1",
        timeout: durationFromMs(7),
        principal: { id: "aaaaaaaaaaaa", roles: [Role.AGENT] },
        device: { manifestDigest: "m2" },
        time: timestampFromMs(5_000),
      },
    });
    await queue.note(call(), asked);
    expect(await queue.next(queued, args, signal)).toMatchObject({ question: { delivery: 2 } });
  });

  it("is asked about with the roles that its principal has now", async () => {
    await queue.note(call(), asked);
    status = { valid: true, roles: [Role.AUDITOR] };
    expect(await queue.next(call(), args, signal)).toMatchObject({
      question: { principal: { roles: [Role.AUDITOR] } },
    });
  });

  it.each(["expired", "revoked"] as const)("is denied where its token is %s by then", async (why) => {
    await queue.note(call(), asked);
    status = { valid: false, why };
    expect(await queue.next(call(), args, signal)).toMatchObject({
      kind: "end",
      end: { state: CallState.DENIED, error: { reason: ErrorReason.TOKEN_REFUSED, metadata: { why } } },
    });
  });

  it("fails when its time is over", async () => {
    await queue.note(call(), asked);
    if (device !== undefined) device.online = false;
    const waiting = queue.next(call(), args, signal);
    nowMs = 61_000;
    expect(await waiting).toMatchObject({
      kind: "end",
      end: { state: CallState.FAILED, error: { reason: ErrorReason.QUEUE_EXPIRED, metadata: { device: "nas" } } },
    });
  });

  it("fails where its tool, or its device, is gone by then", async () => {
    await queue.note(call(), asked);
    const gone = await queue.next(call({ tool: "plugin:x" }), args, signal);
    expect(gone).toMatchObject({
      kind: "end",
      end: { state: CallState.FAILED, error: { reason: ErrorReason.UNKNOWN_TOOL } },
    });
  });

  it("is given up when it is canceled", async () => {
    await queue.note(call(), asked);
    if (device !== undefined) device.online = false;
    const canceled = new AbortController();
    const waiting = queue.next(call(), args, canceled.signal);
    canceled.abort();
    expect(await waiting).toEqual({ kind: "canceled" });
  });

  it("leaves nothing behind when it has ended", async () => {
    await queue.note(call(), asked);
    queue.forget(call());
    await writes.close();
    expect(await db.selectFrom("queued_calls").selectAll().execute()).toEqual([]);
  });
});
