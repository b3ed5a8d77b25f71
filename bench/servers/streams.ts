import { createPublicKey } from "node:crypto";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import {
  type ControlFrame,
  DeviceAgentService,
  DeviceEventSchema,
  type DeviceFrame,
  DeviceFrameSchema,
  type LinkRequest,
  OutputStream,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createAuthority, issueCertificate } from "../../lib/identity/authority.ts";
import { generateTlsKey, tlsKeyToPem } from "../../lib/identity/request.ts";
import { fromDevice, serveLinkFrames } from "../../lib/link/device-frames.ts";
import { framedEnd } from "../../lib/link/framed.ts";
import { reportUsage } from "./report-usage.ts";

// A bare connect-node server over TLS that sends output as fast as it is taken: as messages, and as frames of a link.

const CHUNK_BYTES = 64 * 1024;
const HOUR_MS = 3_600_000;

/** As many bytes as the first command's call id says, in the messages that a device sends what a program prints in. */
async function* print(requests: AsyncIterable<ControlFrame>): AsyncGenerator<DeviceFrame> {
  const callId = "bench";
  const data = new Uint8Array(CHUNK_BYTES).fill(0x61);
  for await (const { commands } of requests) {
    const [first] = commands;
    if (first?.command.case !== "cancel") continue;
    const bytes = Number(first.command.value.callId);
    for (let sent = 0, sequence = 0; sent < bytes; sent += CHUNK_BYTES, sequence++) {
      const value = { callId, sequence, stream: OutputStream.STDOUT, data };
      yield create(DeviceFrameSchema, { events: [create(DeviceEventSchema, { event: { case: "output", value } })] });
    }
    return;
  }
}

const framed = framedEnd(print, fromDevice);
const authority = await createAuthority({ commonName: "bench", ttlMs: HOUR_MS, now: Date.now() });
const key = generateTlsKey();
const cert = await issueCertificate(authority, createPublicKey(key), {
  identity: { kind: "service", name: "bench", trustDomain: "reeve" },
  dns: ["localhost"],
  ips: ["127.0.0.1"],
  ttlMs: HOUR_MS,
  now: Date.now(),
});
const link = (requests: AsyncIterable<LinkRequest>, context: HandlerContext) =>
  serveLinkFrames(context.requestHeader.has("x-framed") ? framed : print)(requests, context.signal);
const server = createSecureServer(
  { cert, key: tlsKeyToPem(key), minVersion: "TLSv1.3" },
  connectNodeAdapter({ acceptCompression: [], routes: (router) => router.service(DeviceAgentService, { link }) }),
);
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address() as AddressInfo;
  reportUsage({ url: `https://127.0.0.1:${port}`, ca: authority.certificate });
});
