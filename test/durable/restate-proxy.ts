import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { RestateAddress } from "../../services/agent/engine/restate/restate-http.ts";

/** A port of loopback that leads to an API of Restate on a Unix socket, as a cluster's address would. */
export async function startTcpProxy(to: RestateAddress): Promise<{ url: string; close(): Promise<void> }> {
  if (!("socketPath" in to)) throw new TypeError("not a socket");
  const open = new Set<Socket>();
  const server = createServer((inside) => {
    const outside = connect(to.socketPath);
    for (const [one, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const one of open) one.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
