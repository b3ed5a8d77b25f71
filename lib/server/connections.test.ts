import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, test } from "vitest";
import { createConnections } from "./connections.ts";

class FakeSocket extends EventEmitter {
  destroyed = false;
  readonly remoteAddress: string;
  constructor(remoteAddress: string) {
    super();
    this.remoteAddress = remoteAddress;
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    setImmediate(() => this.emit("close"));
  }
}

function open(maxConnections: number, connectionsPerAddress = maxConnections) {
  const connections = createConnections({ maxConnections, connectionsPerAddress });
  const dial = (address = "192.0.2.1"): FakeSocket => {
    const socket = new FakeSocket(address);
    connections.add(socket as unknown as Socket);
    return socket;
  };
  const know = (socket: FakeSocket): void => connections.owner(socket as unknown as Socket)?.know();
  return { dial, know };
}

/** How many of them are open. */
const openOf = (sockets: FakeSocket[]): number => sockets.filter(({ destroyed }) => !destroyed).length;

test("strangers have three quarters of the places, and one of them goes for the next one", () => {
  const { dial } = open(4);
  const sockets = [dial(), dial(), dial()];
  expect(openOf(sockets)).toBe(3);
  const next = Array.from({ length: 20 }, () => dial());
  expect(openOf([...sockets, ...next])).toBe(3);
  expect(next.at(-1)?.destroyed).toBe(false);
});

test("known connections stay, whatever comes, and take no place from one that comes to authenticate", () => {
  const { dial, know } = open(4);
  const known = [dial(), dial(), dial()];
  known.forEach(know);
  const flood = Array.from({ length: 50 }, () => dial());
  expect([openOf(known), openOf(flood)]).toEqual([3, 1]);
  const honest = dial();
  know(honest);
  expect([openOf([dial(), dial()]), openOf([honest, ...known])]).toEqual([0, 4]);
});

test("the strangers of one address push out each other, and not those of another", () => {
  const { dial } = open(100, 2);
  const other = [dial("192.0.2.2"), dial("192.0.2.2")];
  const one = Array.from({ length: 10 }, () => dial("192.0.2.1"));
  expect([openOf(other), openOf(one), one.at(-1)?.destroyed]).toEqual([2, 2, false]);
});

test("a connection that closes by itself makes room", async () => {
  const { dial, know } = open(2);
  const first = dial();
  const second = dial();
  [first, second].forEach(know);
  expect(dial().destroyed).toBe(true);
  first.destroy();
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(dial().destroyed).toBe(false);
});
