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

const openOf = (sockets: FakeSocket[]): boolean[] => sockets.map(({ destroyed }) => !destroyed);

test("strangers have three quarters of the places, and the oldest goes for the next one", () => {
  const { dial } = open(4);
  expect(openOf([dial(), dial(), dial()])).toEqual([true, true, true]);
  const { dial: another } = open(4);
  const sockets = Array.from({ length: 5 }, () => another());
  expect(openOf(sockets)).toEqual([false, false, true, true, true]);
});

test("known connections stay, whatever comes, and take no place from one that comes to authenticate", () => {
  const { dial, know } = open(4);
  const known = [dial(), dial(), dial()];
  known.forEach(know);
  const flood = Array.from({ length: 50 }, () => dial());
  expect(openOf(known)).toEqual([true, true, true]);
  expect(openOf(flood).filter(Boolean)).toEqual([true]);
  const honest = dial();
  know(honest);
  expect(openOf([dial(), dial(), honest, ...known])).toEqual([false, false, true, true, true, true]);
});

test("the strangers of one address push out each other, and not those of another", () => {
  const { dial } = open(100, 2);
  const other = [dial("192.0.2.2"), dial("192.0.2.2")];
  const one = Array.from({ length: 10 }, () => dial("192.0.2.1"));
  expect(openOf(other)).toEqual([true, true]);
  expect(openOf(one).lastIndexOf(false)).toBe(7);
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
