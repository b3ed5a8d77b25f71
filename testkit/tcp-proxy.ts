import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A TCP proxy that can break the way it stands in, as networks do. */
export interface TcpProxy extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** How many connections are open through it. */
  readonly connections: number;
  /**
   * From now on every byte is lost, both ways, without a sign: connections stay open, and new ones are taken. What was
   * open before stays lost for good, as behind a NAT that has forgotten it.
   */
  blackhole(): void;
  /** New connections are forwarded again. */
  restore(): void;
  /** Resets every connection; new ones are forwarded. */
  cut(): void;
  /** Forwards new connections to another port from now on, as when a server comes back elsewhere. */
  retarget(port: number): void;
  close(): Promise<void>;
}

/** Forwards what comes to a port on loopback. */
export async function startTcpProxy(target: { host?: string; port: number }): Promise<TcpProxy> {
  const { host = "127.0.0.1" } = target;
  let { port } = target;
  let isBlack = false;
  const lost = new Set<Socket>();
  const pairs = new Map<Socket, Socket>();

  const forward = (from: Socket, to: Socket): void => {
    from.on("data", (chunk: Buffer) => {
      if (lost.has(from) || to.destroyed) return;
      if (to.write(chunk)) return;
      from.pause();
      to.once("drain", () => from.resume());
    });
    from.on("end", () => lost.has(from) || to.end());
    from.on("error", () => undefined);
    // A side that leaves a lost connection leaves alone: the other side never learns of it.
    from.on("close", () => lost.has(from) || to.destroy());
  };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ host, port, allowHalfOpen: true });
    near.setNoDelay(true);
    far.setNoDelay(true);
    if (isBlack) for (const socket of [near, far]) lost.add(socket);
    pairs.set(near, far);
    forward(near, far);
    forward(far, near);
    near.once("close", () => pairs.delete(near));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

  const proxy: TcpProxy = {
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    get connections() {
      return pairs.size;
    },
    blackhole() {
      isBlack = true;
      for (const pair of pairs) for (const socket of pair) lost.add(socket);
    },
    restore() {
      isBlack = false;
    },
    cut() {
      isBlack = false;
      for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
      for (const socket of lost) socket.resetAndDestroy();
      lost.clear();
    },
    retarget(to) {
      port = to;
    },
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      proxy.cut();
      await closed;
    },
    [Symbol.asyncDispose]: () => proxy.close(),
  };
  return proxy;
}
