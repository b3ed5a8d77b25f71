import { existsSync } from "node:fs";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { PeerService } from "../../gen/ts/reeve/cluster/v1/peer_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import type { Authority } from "../../lib/identity/authority.ts";
import { device, service, testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { staticTls, type TlsSource } from "../../lib/identity/tls-source.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { openCallStream, printedIn } from "../../testkit/call-stream.ts";
import {
  type AttachedDevice,
  online,
  peerTransport,
  type Replica,
  type ReplicaScene,
  startReplicaScene,
} from "../../testkit/replicas.ts";

let scene: ReplicaScene;
let authority: Authority;
let a: Replica;
let b: Replica;
let nas: AttachedDevice;
let mark: string;
const transports = new DisposableStack();

const certificate = async (...args: Parameters<typeof testMaterial>): Promise<TlsSource> =>
  staticTls(await testMaterial(...args));

beforeAll(async () => {
  authority = await testAuthority();
  setDefaultCACertificates([...getCACertificates("default"), authority.certificate]);
  scene = await startReplicaScene(await certificate(authority, service("registry")));
  [a, b] = await Promise.all([scene.replica(), scene.replica()]);
  nas = await scene.device("nas", [b.url]);
  mark = join(nas.work, "running");
  await online(a, "nas", b);
});
afterAll(async () => {
  transports.dispose();
  await scene?.close();
});

const DAY_MS = 24 * 3_600_000;

/** Callers that are not a replica, by how they come. */
const INTRUDERS: Record<string, () => Promise<{ tls: TlsSource } | { token: string }>> = {
  "a certificate of policy": async () => ({ tls: await certificate(authority, service("policy")) }),
  "the certificate of a device": async () => ({ tls: await certificate(authority, device(nas.id)) }),
  "a registry's certificate of another authority": async () => {
    const trusted = authority;
    return { tls: await certificate(await testAuthority(), service("registry"), { trusted }) };
  },
  "a registry's certificate that has expired": async () => ({
    tls: await certificate(authority, service("registry"), { now: Date.now() - DAY_MS, ttlMs: DAY_MS / 2 }),
  }),
  "a service's token": async () => ({ token: "registry" }),
  "an operator's token": async () => ({ token: "operator" }),
};

async function* asking(deviceId: string, callId: string) {
  yield { deviceId };
  yield { frame: { commands: [{ command: { case: "cancel" as const, value: { callId } } }] } };
}

/** What each RPC of a peer answers. */
async function askAll(transport: ServiceTransport, callId: string): Promise<unknown[]> {
  const peer = createClient(
    PeerService,
    transports.adopt(transport, (one) => one.close()),
  );
  const asked = [
    Array.fromAsync(peer.forwardDevice(asking(nas.id, callId))),
    Array.fromAsync(peer.followCall({ callId })),
    peer.cancelOwnedCall({ callId }),
    peer.wake({}),
  ];
  return (await Promise.allSettled(asked)).map((one) => (one.status === "rejected" ? one.reason : one.value));
}

test.each(Object.keys(INTRUDERS))("a replica does nothing for %s", async (name) => {
  const callId = `running-${Object.keys(INTRUDERS).indexOf(name)}`;
  const stream = openCallStream(a.operator.registry);
  const argv = ["bash", "-c", `touch ${mark}; echo started; while [ -e ${mark} ]; do sleep 0.02; done`];
  stream.call({ device: "nas", tool: "exec", params: { argv }, callId });
  await stream.next(printedIn);
  const by = await INTRUDERS[name]?.();
  // Both the replica that owns the call and the one that holds its device.
  for (const { url } of [a, b]) {
    const answers = await askAll(createServiceTransport({ baseUrl: url, protocol: "grpc", ...by }), callId);
    for (const answer of answers) {
      expect(answer).toBeInstanceOf(Error);
      expect([ErrorReason.IDENTITY_REFUSED, ErrorReason.ROLE_REQUIRED]).toContain(faultDetail(answer)?.reason);
    }
  }
  expect(existsSync(mark)).toBe(true);
  stream.cancel(callId);
  expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
  await stream.end();
});

test("a replica sends no call to an address where another service answers", async () => {
  const policy = await certificate(authority, service("policy"));
  const c = await scene.replica({ enrollment: { tls: policy } });
  const guest = await scene.device("guest", [c.url]);
  await online(a, "guest", c);
  const { call } = await a.operator.registry.callTool({ device: "guest", tool: "device.ping", params: {} });
  expect(call).toMatchObject({ status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } });
  expect(call?.status?.errorMessage).toContain("service/registry");
  await guest.close();
  await c.close();
});

test("a registry's own certificate is what makes a peer", async () => {
  const tls = await certificate(authority, service("registry"));
  const peer = createClient(
    PeerService,
    transports.adopt(peerTransport(b.url, tls), (one) => one.close()),
  );
  for await (const { frame } of peer.forwardDevice(asking(nas.id, "no-such-call"))) {
    expect(frame).toMatchObject({ events: [{ event: { case: "hello" } }] });
    break;
  }
  const followed = Array.fromAsync(peer.followCall({ callId: "no-such-call" }));
  expect(faultDetail(await followed.catch((error: unknown) => error))?.reason).toBe(ErrorReason.NOT_FOUND);
  await peer.wake({});
});
