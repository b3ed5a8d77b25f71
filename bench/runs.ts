import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createClient } from "@connectrpc/connect";
import { RunState } from "../gen/ts/reeve/agent/v1/run_pb.ts";
import { RunService } from "../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { startScriptedModel } from "../services/agent/scripted-model/server.ts";
import { startControlPlane } from "../testkit/control-plane.ts";
import { freePorts } from "../testkit/free-port.ts";
import { startServiceProcess } from "../testkit/service-process.ts";
import { readMetrics } from "./plane/process-metrics.ts";

const HELP = `npm run bench:runs [-- options]: what runs cost that wait. Starts so many runs, each of which holds a call that no person
decides, and measures the processes of the agent service and the registry while nothing happens.

  --runs N      how many. Default 1000
  --seconds N   for how long nothing happens. Default 15
`;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "1000" },
    seconds: { type: "string", default: "15" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await run(Number(values.runs), Number(values.seconds));

async function run(count: number, seconds: number): Promise<void> {
  await using parts = new AsyncDisposableStack();
  const turns = Array.from({ length: count + 1 }, () => ({
    toolUses: [{ name: "exec", input: { argv: ["touch", "x"] } }],
  }));
  const model = parts.adopt(await startScriptedModel({ turns }), (one) => one.close());
  const many = String(count + 100);
  const plane = parts.adopt(
    await startControlPlane({
      probes: true,
      mode: "all",
      env: { REEVE_AGENT_CALLS: many, REEVE_AGENT_HELD_CALLS: many },
    }),
    (one) => one.close(),
  );
  const [port = 0, probe = 0] = await freePorts(2);
  const agent = parts.adopt(
    await startServiceProcess("agent", port, {
      REEVE_AGENT_PORT: String(port),
      REEVE_PROBE_PORT: String(probe),
      REEVE_AGENT_STATE_DIR: join(plane.folder, "agent"),
      REEVE_TOKENS_FILE: join(plane.folder, "tokens.json"),
      REEVE_REGISTRY_URL: plane.registry.url,
      REEVE_AGENT_TOKEN: plane.tokens.agent,
      ANTHROPIC_API_KEY: "key",
      ANTHROPIC_BASE_URL: model.url,
    }),
    (one) => one.stop(),
  );
  const transport = createServiceTransport({ baseUrl: agent.url, token: plane.tokens.agent });
  parts.defer(() => transport.close());
  const runs = createClient(RunService, transport);
  const startOne = () => runs.startRun({ spec: { prompt: "Wait.", devices: ["this"] } });
  const waiting = async (): Promise<number> => {
    const { runs: first } = await runs.listRuns({ state: RunState.RUNNING, pageSize: 1 });
    const { runs: pending } = await runs.listRuns({ state: RunState.PENDING, pageSize: 1 });
    return first.length + pending.length;
  };
  const untilWaiting = async () => {
    do await sleep(500);
    while ((await waiting()) > 0);
  };
  const probes = { "agent service": probe, registry: plane.probes.registries[0] ?? 0 };
  const measure = async () => Promise.all(Object.values(probes).map((one) => readMetrics(one)));

  // The first run loads what all of them share.
  await startOne();
  await untilWaiting();
  await sleep(2000);
  const before = await measure();
  const began = performance.now();
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await startOne();
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  await untilWaiting();
  const startSeconds = (performance.now() - began) / 1000;
  await sleep(3000);
  const idle = await measure();
  await sleep(seconds * 1000);
  const after = await measure();
  process.stdout.write(`${count} runs that wait for a held call, started in ${startSeconds.toFixed(1)} s\n`);
  Object.keys(probes).forEach((name, at) => {
    const [first, middle, last] = [before[at], idle[at], after[at]];
    if (first === undefined || middle === undefined || last === undefined) return;
    const kib = (last.rssBytes - first.rssBytes) / 1024 / count;
    const cpu = ((last.cpuSeconds - middle.cpuSeconds) / seconds) * 1e6;
    process.stdout.write(
      `${name.padEnd(14)} RSS ${mebibytes(first.rssBytes)} → ${mebibytes(last.rssBytes)} MiB, ${kib.toFixed(1)} KiB a run; ` +
        `CPU ${(cpu / 1e4).toFixed(2)} % of a core, ${(cpu / count).toFixed(2)} µs/s a run\n`,
    );
  });
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}
