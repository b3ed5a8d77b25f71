import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { drive, type Sample } from "../measure/drive.ts";
import { eachOf } from "../measure/each-of.ts";
import type { Plane } from "../plane/plane.ts";
import { openCallStream } from "../subjects/call-stream.ts";

/** Calls the devices of a fleet in turn. */
export interface FleetCaller {
  /** Keeps so many calls in flight for so long. A call that does not succeed ends the benchmark. */
  drive(how: "unary" | "stream", concurrency: number, ms: number): Promise<Sample>;
  /** Calls the first device so many times. */
  warm(calls: number, concurrency: number): Promise<void>;
  /** Calls each device once. Resolves with how many calls did not succeed. */
  callEach(concurrency: number): Promise<number>;
  close(): void;
}

/** Calls device.ping through the plane's registry. */
export function openFleetCaller({ replicas, tokens, ca }: Plane, names: readonly string[]): FleetCaller {
  const transport = createServiceTransport({ baseUrl: replicas[0]?.url ?? "", token: tokens.agent, ca });
  const client = registryClient(transport);
  const ping = (device: string) => ({ device, tool: "device.ping", params: {} });
  const unary = async (device: string): Promise<void> => {
    const { call } = await client.callTool(ping(device));
    if (call?.status?.state !== CallState.SUCCEEDED)
      throw new Error(`a call ended as ${call?.status?.state}: ${call?.status?.errorMessage}`);
  };
  let turn = 0;
  const next = (): string => names[turn++ % names.length] ?? "";
  return {
    drive(how, concurrency, ms) {
      if (how === "unary") return drive(() => unary(next()), concurrency, ms);
      const stream = openCallStream(client);
      return drive(
        async () => {
          const { state, errorMessage } = (await stream.call(ping(next()))).status;
          if (state !== CallState.SUCCEEDED) throw new Error(`a call ended as ${state}: ${errorMessage}`);
        },
        concurrency,
        ms,
      ).finally(() => stream.end());
    },
    async warm(calls, concurrency) {
      await eachOf(Array<string>(calls).fill(names[0] ?? ""), concurrency, unary);
    },
    async callEach(concurrency) {
      const ends = await eachOf(names, concurrency, (name) =>
        unary(name).then(
          () => true,
          () => false,
        ),
      );
      return ends.filter((isGood) => !isGood).length;
    },
    close: transport.close,
  };
}
