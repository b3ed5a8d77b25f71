import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ControlFrame, DeviceFrame, DeviceHello } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { DeviceAgentService } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../lib/auth/principal.ts";
import { fromDevice, serveLinkFrames } from "../../lib/link/device-frames.ts";
import { framedEnd } from "../../lib/link/framed.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { pingsKey } from "../../lib/server/context.ts";
import { createServer, type Server, type ServerOptions } from "../../lib/server/server.ts";
import type { Pings } from "../../lib/wire/pings.ts";
import { type Attachment, type AttachOptions, attachAgent } from "../../services/device-agent/attach/attach.ts";
import { openAttachCount } from "../../services/device-agent/count-file.ts";
import type { TestAgent } from "../../services/device-agent/testing/test-agent.ts";
import { createDeviceLink, type DeviceLink, type DeviceRoute } from "../../services/registry/devices/device-link.ts";
import { attachRoutes, createSessions, type SessionsOptions } from "../../services/registry/devices/sessions.ts";
import { deviceOver } from "../../services/registry/dialers.ts";
import { startTcpProxy, type TcpProxy } from "../../testkit/tcp-proxy.ts";

/** How often a link sends a heartbeat in these tests, in milliseconds: five times as often as outside. */
export const HEARTBEAT_MS = 200;

export const logger = createLogger({ service: "test", level: "silent" });

const SERVICE: Principal = { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" };

/** What the two sides of a link saw of it. */
export interface Seen {
  /** Each Hello that the registry got. */
  hellos: DeviceHello[];
  /** How often the registry's side went down. */
  downs: number;
  /** Each link that ended on the device. */
  deviceEnds: unknown[];
}

/** A registry's link to a device over sockets, with a proxy in between. */
export interface Linked extends AsyncDisposable {
  link: DeviceLink;
  proxy: TcpProxy;
  seen: Seen;
  /** Closes the device as its process would. */
  closeDevice(): Promise<void>;
}

/** A way to open a link. */
export interface LinkWay {
  name: string;
  open(device: TestAgent): Promise<Linked>;
}

/** Direct mode, and attach mode. */
export const LINK_WAYS: readonly LinkWay[] = [
  {
    name: "the registry dials",
    async open(device) {
      const parts = new AsyncDisposableStack();
      const seen: Seen = { hellos: [], downs: 0, deviceEnds: [] };
      const { draining } = device.agent;
      const endOver = (pings: Pings | undefined) =>
        serveLinkFrames(
          framedEnd(watched(device.agent.link, seen), fromDevice, { heartbeatMs: HEARTBEAT_MS, draining, pings }),
        );
      const server = await serve(parts, {
        routes: (router) =>
          router.service(DeviceAgentService, {
            link: (requests, context) => endOver(context.values.get(pingsKey))(requests, context.signal),
          }),
        authenticate: () => SERVICE,
      });
      const proxy = parts.use(await startTcpProxy({ port: server.port }));
      const transport = createServiceTransport({ baseUrl: `http://127.0.0.1:${proxy.port}`, protocol: "grpc" });
      parts.defer(() => transport.close());
      const dialer = deviceOver(transport, { heartbeatMs: HEARTBEAT_MS, answerMs: 400, pings: transport.pings });
      const link = linkTo(parts, { choose: () => ({ key: "direct", dialer }) }, seen);
      return {
        link,
        proxy,
        seen,
        closeDevice: () => device.agent.close(),
        [Symbol.asyncDispose]: () => parts.disposeAsync(),
      };
    },
  },
  {
    name: "the device dials",
    async open(device) {
      const parts = new AsyncDisposableStack();
      const seen: Seen = { hellos: [], downs: 0, deviceEnds: [] };
      const point = await openPoint(parts, device.agent.deviceId);
      const proxy = parts.use(await startTcpProxy({ port: point.server.port }));
      const link = linkTo(parts, point, seen);
      const attachment = await attach(parts, device, { ports: [proxy.port], seen });
      return { link, proxy, seen, closeDevice: attachment.close, [Symbol.asyncDispose]: () => parts.disposeAsync() };
    },
  },
];

/** A place to attach that admits any agent for that device. */
export async function openPoint(
  parts: AsyncDisposableStack,
  deviceId: string,
  options: SessionsOptions & Pick<ServerOptions, "tls"> = {},
) {
  const links = new Set<DeviceLink>();
  const choose = (): DeviceRoute | undefined => {
    const session = sessions.get(deviceId);
    return session && { key: session, dialer: session.open };
  };
  const sessions = createSessions({
    heartbeatMs: HEARTBEAT_MS,
    ...options,
    onAdmitted(session) {
      options.onAdmitted?.(session);
      for (const link of links) link.reroute();
    },
  });
  const server = await serve(parts, {
    routes: attachRoutes(sessions),
    authenticate: () => ({ id: deviceId, kind: "device", roles: [Role.DEVICE], name: deviceId }),
    ...(options.tls && { tls: options.tls }),
  });
  parts.defer(() => sessions.close());
  return { sessions, choose, links, server };
}

/** How an agent dials. */
export interface AttachWay extends Pick<AttachOptions, "onRenewed" | "heartbeatMs"> {
  ports: readonly number[];
  /** The registry's certificate authority, where it is reached by TLS. */
  ca?: string;
  stateDir?: string;
  seen?: Seen;
}

/** Lets an agent dial. */
export async function attach(
  parts: AsyncDisposableStack,
  device: TestAgent,
  { ports, ca, stateDir = device.config.stateDir, seen, onRenewed, heartbeatMs = HEARTBEAT_MS }: AttachWay,
): Promise<Attachment> {
  const { agent } = device;
  const attachment = attachAgent({
    agent: {
      linkAs: (count) => (seen === undefined ? agent.linkAs(count) : watched(agent.linkAs(count), seen)),
      draining: agent.draining,
      close: () => agent.close(),
    },
    count: await openAttachCount(stateDir),
    urls: ports.map((port) => `${ca === undefined ? "http" : "https"}://127.0.0.1:${port}`),
    transportTo: (baseUrl) => createServiceTransport({ baseUrl, protocol: "grpc", ...(ca && { ca }) }),
    logger,
    ...(onRenewed && { onRenewed }),
    heartbeatMs,
    againMs: 400,
    answerMs: 400,
    maxBackoffMs: 100,
    refusedBackoffMs: 100,
  });
  parts.defer(() => attachment.close());
  return attachment;
}

/** The registry's link along a route, which trusts any device that it meets. */
export function linkTo(
  parts: AsyncDisposableStack,
  { choose, links }: { choose(): DeviceRoute | undefined; links?: Set<DeviceLink> },
  seen: Seen,
): DeviceLink {
  const link = createDeviceLink({
    choose,
    maxBackoffMs: 100,
    onHello(hello) {
      seen.hellos.push(hello);
      return true;
    },
    onDown() {
      seen.downs++;
    },
  });
  links?.add(link);
  parts.defer(() => link.close());
  return link;
}

/** A folder of its own, removed at the end. */
export async function folder(parts: AsyncDisposableStack): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "reeve-link-"));
  parts.defer(() => rm(path, { recursive: true }));
  return path;
}

function watched(end: StreamFactory<ControlFrame, DeviceFrame>, seen: Seen): StreamFactory<ControlFrame, DeviceFrame> {
  return (requests, left) => {
    left.addEventListener("abort", () => seen.deviceEnds.push(left.reason), { once: true });
    return end(requests, left);
  };
}

async function serve(
  parts: AsyncDisposableStack,
  options: Pick<ServerOptions, "routes" | "authenticate" | "tls">,
): Promise<Server> {
  const server = await createServer({ ...options, logger });
  parts.defer(() => server.close(100));
  return server;
}
