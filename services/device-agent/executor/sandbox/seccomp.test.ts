import { describe, expect, test } from "vitest";
import { seccompFilter } from "./seccomp.ts";
import { SYSTEM_CALLS, type SystemCalls } from "./system-calls.ts";

const [ALLOWED, REFUSED, MISSING, KILLED] = [0x7fff0000, 0x50001, 0x50026, 0x80000000];

/** What the kernel does with a call: it runs the filter over struct seccomp_data. */
function verdict(filter: Buffer, audit: number, number: number, first = 0, second = 0): number {
  const data = new Map([
    [0, number],
    [4, audit],
    [16, first],
    [24, second],
  ]);
  let accumulator = 0;
  for (let at = 0; ; ) {
    const [code, yes, no] = [filter.readUInt16LE(at * 8), filter[at * 8 + 2] ?? 0, filter[at * 8 + 3] ?? 0];
    const value = filter.readUInt32LE(at * 8 + 4);
    if (code === 0x06) return value;
    if (code === 0x20) {
      accumulator = (data.get(value) ?? 0) >>> 0;
      at += 1;
      continue;
    }
    const holds = new Map([
      [0x15, accumulator === value],
      [0x35, accumulator >= value],
      [0x45, (accumulator & value) >>> 0 !== 0],
    ]).get(code);
    if (holds === undefined) throw new Error(`instruction ${code}`);
    at += 1 + (holds ? yes : no);
  }
}

describe.each([...SYSTEM_CALLS])("the filter of %s", (arch, calls: SystemCalls) => {
  const filter = seccompFilter(calls);
  const of = (number: number, first?: number, second?: number) => verdict(filter, calls.audit, number, first, second);

  test("refuses what it names, and allows what programs need", () => {
    for (const number of calls.refused) expect(of(number)).toBe(REFUSED);
    const needed = arch === "x64" ? [0, 1, 2, 9, 13, 59, 60, 257, 42, 72] : [56, 63, 64, 93, 134, 203, 221, 222];
    for (const number of needed) expect(of(number)).toBe(ALLOWED);
  });

  test("allows sockets of the internet and of routes only", () => {
    for (const family of [2, 10, 16]) expect(of(calls.socket, family)).toBe(ALLOWED);
    for (const family of [0, 1, 17, 38, 40, 44]) expect(of(calls.socket, family)).toBe(REFUSED);
  });

  test("allows processes and threads, and no new namespaces", () => {
    expect([of(calls.clone, 17), of(calls.clone, 0x3d0f00)]).toEqual([ALLOWED, ALLOWED]);
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(of(calls.clone, flag | 17)).toBe(REFUSED);
    }
    expect(of(calls.clone3)).toBe(MISSING);
  });

  test("lets no terminal be typed into", () => {
    for (const request of [0x5412, 0x541c]) expect(of(calls.ioctl, 0, request)).toBe(REFUSED);
    expect(of(calls.ioctl, 0, 0x5401)).toBe(ALLOWED);
  });

  test("kills what calls by the numbers of another architecture", () => {
    for (const audit of [0x40000003, 0x40000028, 0]) expect(verdict(filter, audit, 1)).toBe(KILLED);
    if (arch === "x64") expect(of(0x40000000 + 1)).toBe(KILLED);
  });
});
