import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** A load balancer for TCP connections, as a Kubernetes service is one: each new connection goes to the next backend. */
export interface TcpBalancer {
  port: number;
  close(): Promise<void>;
}

/** Starts one on loopback. A backend that takes no connection is passed over. @param ports the backends' ports. */
export async function startTcpBalancer(ports: readonly number[]): Promise<TcpBalancer> {
  const open = new Set<Socket>();
  let turn = 0;
  const keep = (socket: Socket): void => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  };
  const dial = (client: Socket, tries: number): void => {
    const port = ports[turn++ % ports.length];
    if (tries === 0 || port === undefined) return void client.destroy();
    const backend = connect({ port, host: "127.0.0.1" });
    const onRefused = () => dial(client, tries - 1);
    backend.once("error", onRefused);
    backend.once("connect", () => {
      backend.off("error", onRefused);
      keep(backend);
      join(client, backend);
    });
  };
  const server = createServer({ noDelay: true }, (client) => {
    keep(client);
    client.on("error", () => client.destroy());
    dial(client, ports.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

function join(client: Socket, backend: Socket): void {
  backend.on("error", () => backend.destroy());
  backend.setNoDelay(true);
  client.pipe(backend).pipe(client);
  client.once("close", () => backend.destroy());
  backend.once("close", () => client.destroy());
}
