import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below what systems hand out by themselves (from 32768 on Linux, from 49152 elsewhere): while a server that is to come
 * back on its port is down, no connection and no server on "any free port" can take it.
 */
const FIRST = 16_384;
const END = 32_768;

/** Ports on loopback that are free now, all different: for servers that must come back on the same port. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, END);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
