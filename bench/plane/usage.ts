import type { Usage } from "../measure/server-process.ts";
import type { Plane } from "./plane.ts";

/** What all registries and policy have used together. Devices, PostgreSQL and NATS are not counted. */
export async function planeUsage({ replicas, policy }: Plane): Promise<Usage> {
  const all = await Promise.all([...replicas, policy].map((one) => one.metrics()));
  return {
    cpuUs: all.reduce((sum, { cpuSeconds }) => sum + cpuSeconds * 1e6, 0),
    rssBytes: all.reduce((sum, { rssBytes }) => sum + rssBytes, 0),
  };
}
