import { spawn } from "node:child_process";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import {
  type ControlFrame,
  ControlFrameSchema,
  DeviceAgentService,
  DeviceCommandSchema,
  type DeviceFrame,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createBatchQueue } from "../../lib/async/batch-queue.ts";
import { linkFrames, toDevice } from "../../lib/link/device-frames.ts";
import { framedDialer } from "../../lib/link/framed.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { startServer } from "../measure/server-process.ts";
import type { StreamSubject, Transfer } from "./stream-subject.ts";

/** A line of seq is nine digits and its end. */
const LINE_BYTES = 10;
const FIRST_LINE = 100_000_000;

/** The same messages over the same TLS connection: as they are, and with a link's framing. */
export async function bareStreams(parts: AsyncDisposableStack): Promise<StreamSubject[]> {
  const server = parts.adopt(await startServer("streams"), (one) => one.stop());
  const transport = createServiceTransport({ baseUrl: server.url, ca: server.ca, protocol: "grpc" });
  parts.defer(() => transport.close());
  const client = createClient(DeviceAgentService, transport);
  const bare: StreamFactory<ControlFrame, DeviceFrame> = linkFrames((requests, signal) =>
    client.link(requests, { signal }),
  );
  const framed = framedDialer<ControlFrame, DeviceFrame>(
    linkFrames((requests, signal) => client.link(requests, { signal, headers: { "x-framed": "1" } })),
    toDevice,
  );
  return [
    { name: "bare pipe", what: "a program's output read by this process", transfer: pipe },
    { name: "bare stream", what: "connect-node, gRPC over TLS", transfer: (bytes) => read(bare, bytes) },
    { name: "framed link", what: "the same with a link's framing", transfer: (bytes) => read(framed, bytes) },
  ];
}

/** What a program prints as fast as it can, read here. */
async function pipe(bytes: number): Promise<Transfer> {
  const lines = Math.ceil(bytes / LINE_BYTES);
  const began = performance.now();
  const program = spawn("seq", [String(FIRST_LINE), String(FIRST_LINE + lines - 1)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let arrivedBytes = 0;
  for await (const chunk of program.stdout as AsyncIterable<Buffer>) arrivedBytes += chunk.length;
  if (arrivedBytes !== lines * LINE_BYTES) throw new Error(`${arrivedBytes} of ${lines * LINE_BYTES} bytes came`);
  return { bytes: arrivedBytes, elapsedMs: performance.now() - began };
}

async function read(dialer: StreamFactory<ControlFrame, DeviceFrame>, bytes: number): Promise<Transfer> {
  const asked = createBatchQueue<ControlFrame>();
  // The command's text says how much is wanted.
  const command = create(DeviceCommandSchema, { command: { case: "cancel", value: { callId: String(bytes) } } });
  asked.push(create(ControlFrameSchema, { commands: [command] }));
  async function* requests() {
    for await (const batch of asked.batches()) yield* batch;
  }
  const began = performance.now();
  let arrivedBytes = 0;
  for await (const { events } of dialer(requests(), new AbortController().signal)) {
    for (const { event } of events) if (event.case === "output") arrivedBytes += event.value.data.length;
    if (arrivedBytes >= bytes) asked.end();
  }
  if (arrivedBytes < bytes) throw new Error(`${arrivedBytes} of ${bytes} bytes came`);
  return { bytes: arrivedBytes, elapsedMs: performance.now() - began };
}
