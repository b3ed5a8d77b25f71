import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { connect, type NatsConnection } from "nats";
import { Registry } from "prom-client";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ReplicaBodySchema } from "../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { busKeysOf } from "../../services/registry/replicas/bus-key.ts";
import { sealMessage } from "../../services/registry/replicas/sealed-message.ts";
import { openCallStream, printedIn } from "../../testkit/call-stream.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type AttachedDevice, BUS_KEY, online, type Replica, type ReplicaScene, startReplicaScene } from "./fixture.ts";

let scene: ReplicaScene;
let a: Replica;
let b: Replica;
let nas: AttachedDevice;
/** Somebody inside the bus. */
let intruder: NatsConnection;
/** Where b counts. */
const metrics = new Registry();
let before: Record<string, number> = {};
/** Everything that was said between the replicas, by subject. */
const heard: { subject: string; data: Uint8Array }[] = [];

beforeAll(async () => {
  scene = await startReplicaScene();
  intruder = await connect({ servers: scene.nats.url });
  intruder.subscribe("reeve_replica.>", {
    callback: (_, { subject, data }) => void heard.push({ subject, data: new Uint8Array(data) }),
  });
  [a, b] = await Promise.all([scene.replica(), scene.replica({ metrics })]);
  nas = await scene.device("nas", [b.url]);
  await online(a, "nas", b);
});
afterAll(async () => {
  await intruder?.close();
  await scene?.close();
});
beforeEach(async () => {
  heard.length = 0;
  before = await refusedInAll();
});

const OUTSIDER_KEY = randomBytes(32);

type Body = MessageInitShape<typeof ReplicaBodySchema>;

/** A message as an honest replica would seal it, but for what is changed. */
function message(change: Body = {}, key: Uint8Array = BUS_KEY): Uint8Array {
  const body = create(ReplicaBodySchema, {
    from: a.registry.replicaId,
    to: b.registry.replicaId,
    session: randomBytes(16).toString("hex"),
    number: 1n,
    time: timestampFromMs(Date.now()),
    message: { case: "openDevice", value: { deviceId: nas.id } },
    ...change,
  });
  return sealMessage(body, busKeysOf(key));
}

function changed(bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes);
  // A bit of the body, which comes first.
  copy[10] = (copy[10] ?? 0) ^ 1;
  return copy;
}

/** How often b has refused something since the test began, by why. */
async function refusals(): Promise<Record<string, number>> {
  const now = await refusedInAll();
  const since = Object.entries(now).map(([why, count]) => [why, count - (before[why] ?? 0)] as const);
  return Object.fromEntries(since.filter(([, count]) => count > 0));
}

async function refusedInAll(): Promise<Record<string, number>> {
  const counter = await metrics.getSingleMetric("reeve_bus_messages_refused_total")?.get();
  return Object.fromEntries((counter?.values ?? []).map(({ labels, value }) => [String(labels.why), value]));
}

async function sendToB(bytes: Uint8Array): Promise<void> {
  intruder.publish(`reeve_replica.${b.registry.replicaId}`, bytes);
  await intruder.flush();
}

test.each<[string, () => Uint8Array, string]>([
  ["of another key", () => message({}, OUTSIDER_KEY), "forged"],
  ["that was changed on its way", () => changed(message()), "forged"],
  ["from an hour ago", () => message({ time: timestampFromMs(Date.now() - 3_600_000) }), "stale"],
  ["from the future", () => message({ time: timestampFromMs(Date.now() + 3_600_000) }), "stale"],
  [
    "of a session that was never opened",
    () => message({ number: 2n, message: { case: "cancel", value: {} } }),
    "stale",
  ],
  ["for another replica", () => message({ to: a.registry.replicaId }), "misdirected"],
  ["from the receiver itself", () => message({ from: b.registry.replicaId }), "misdirected"],
  ["that is none", () => Buffer.from("hello"), "malformed"],
  ["that says nothing", () => message({ message: { case: undefined } }), "malformed"],
])("refuses a message %s", async (_, forge, why) => {
  await sendToB(forge());
  await eventually(async () => expect(await refusals()).toEqual({ [why]: 1 }));
  const answers = heard.filter(({ subject }) => subject === `reeve_replica.${a.registry.replicaId}`);
  expect(answers).toEqual([]);
});

test("what the bus carried once runs nothing when it is played again", async () => {
  const mark = join(nas.work, "replayed");
  const argv = ["bash", "-c", `echo run >> ${mark}; echo done`];
  const { call } = await a.operator.registry.callTool({ device: "nas", tool: "exec", params: { argv } });
  expect(call?.output).toMatchObject({ stdout: "done\n" });
  const toB = heard.filter(({ subject }) => subject.endsWith(b.registry.replicaId));
  expect(toB.length).toBeGreaterThan(0);
  heard.length = 0;
  for (const { subject, data } of toB) intruder.publish(subject, data);
  await intruder.flush();
  await eventually(async () => expect(await refusals()).toEqual({ stale: toB.length }));
  expect(await readFile(mark, "utf8")).toBe("run\n");
});

test("a message put into a running session does not cancel its call", async () => {
  const mark = join(nas.work, "injected");
  const stream = openCallStream(a.operator.registry);
  const argv = ["bash", "-c", `touch ${mark}; echo started; while [ -e ${mark} ]; do sleep 0.02; done`];
  stream.call({ device: "nas", tool: "exec", params: { argv }, callId: "injected" });
  await stream.next(printedIn);
  // Whoever reads the bus sees the sessions, and still has no key.
  for (const { data } of heard.filter(({ subject }) => subject.endsWith(b.registry.replicaId))) {
    await sendToB(changed(data));
  }
  await eventually(async () => expect((await refusals()).forged).toBeGreaterThan(0));
  expect(existsSync(mark)).toBe(true);
  stream.cancel("injected");
  await stream.ended("injected");
  await stream.end();
});
