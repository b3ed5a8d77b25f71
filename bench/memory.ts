import { parseArgs } from "node:util";
import { registryClient } from "../client/registry.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { type Memory, startServer } from "./measure/server-process.ts";
import { governedCalls, NOOP } from "./subjects/governed.ts";

const HELP = `npm run bench:memory [-- options]: whether a server's memory grows with the calls that it has made. One governed server
makes calls over a stream, and collects its garbage at every tenth of them.

  --calls N         how many. Default 1000000
  --concurrency N   calls in flight. Default 64
`;

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "1000000" },
    concurrency: { type: "string", default: "64" },
    help: { type: "boolean", default: false },
  },
});

if (values.help) process.stdout.write(HELP);
else await run(Number(values.calls), Number(values.concurrency));

async function run(calls: number, concurrency: number): Promise<void> {
  const server = await startServer("governed");
  const transport = createServiceTransport({ baseUrl: server.url, token: server.token });
  const call = governedCalls(registryClient(transport)).streamed(NOOP);
  const print = (made: number, seconds: number, memory: Memory): void => {
    const cells = [
      made,
      seconds.toFixed(1),
      ...[memory.rssBytes, memory.heapBytes, memory.externalBytes].map(mebibytes),
    ];
    process.stdout.write(`${cells.map((cell) => String(cell).padStart(12)).join("")}\n`);
  };
  process.stdout.write(
    `${["calls", "s", "RSS MiB", "heap MiB", "external MiB"].map((t) => t.padStart(12)).join("")}\n`,
  );
  const began = performance.now();
  for (let tenth = 0; tenth <= 10; tenth++) {
    const made = Math.round((calls * tenth) / 10);
    if (tenth > 0) await makeCalls(call, made - Math.round((calls * (tenth - 1)) / 10), concurrency);
    print(made, (performance.now() - began) / 1000, await server.memory());
  }
  transport.close();
  await server.stop();
  process.exit(0);
}

async function makeCalls(call: () => Promise<void>, count: number, concurrency: number): Promise<void> {
  let left = count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

function mebibytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
