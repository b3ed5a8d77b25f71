import { registryClient } from "../../client/registry.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { type Plane, startPlane } from "../plane/plane.ts";
import { planeUsage } from "../plane/usage.ts";
import { governedCalls, NOOP } from "./governed.ts";
import type { Subject } from "./subject.ts";

const YARDSTICK = "bare MCP";

/**
 * The same call through a registry that holds the device's stream, through another one, and through one that has dialed
 * the device. All services are processes of their own.
 */
export async function pathSubjects(parts: AsyncDisposableStack): Promise<Subject[]> {
  const plane = parts.adopt(
    await startPlane({
      registries: 2,
      database: "postgres",
      nats: true,
      devices: { far: { link: 1 }, near: { link: "dialed" } },
    }),
    (one) => one.close(),
  );
  const usage = () => planeUsage(plane);
  return WAYS.flatMap(({ name, replica, device }) => {
    const { unary, streamed } = governedCalls(callerOf(plane, replica));
    return [
      { name, against: [YARDSTICK], call: unary({ ...NOOP, device }), usage },
      { name: `${name}, stream`, against: [YARDSTICK], call: streamed({ ...NOOP, device }), usage },
    ];
  });
}

const WAYS = [
  { name: "same replica", replica: 1, device: "far" },
  { name: "cross replica", replica: 0, device: "far" },
  { name: "direct", replica: 0, device: "near" },
];

/** An agent's client of one replica. */
export function callerOf({ replicas, tokens, ca }: Plane, replica: number) {
  const baseUrl = replicas[replica]?.url ?? "";
  return registryClient(createServiceTransport({ baseUrl, token: tokens.agent, ca, readMaxBytes: 16 << 20 }));
}
