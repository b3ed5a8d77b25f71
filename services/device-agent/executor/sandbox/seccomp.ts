import type { SystemCalls } from "./system-calls.ts";

/** One instruction of classic BPF (struct sock_filter); a jump goes to a label, or on to the next instruction. */
interface Instruction {
  code: number;
  value: number;
  yes?: Label;
  no?: Label;
}

type Label = "kill" | "refuse" | "missing" | "allow" | "socket" | "clone" | "ioctl" | "number";

/** BPF_LD | BPF_W | BPF_ABS, BPF_JMP with BPF_JEQ, BPF_JGE and BPF_JSET, BPF_RET. */
const [LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN] = [0x20, 0x15, 0x35, 0x45, 0x06] as const;

/** Where struct seccomp_data holds what a program may look at; of the arguments the low halves, which the kernel uses here. */
const [NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT] = [0, 4, 16, 24] as const;

const KILL_PROCESS = 0x80000000;
const ALLOW = 0x7fff0000;
const ERRNO = 0x00050000;
const [EPERM, ENOSYS] = [1, 38] as const;

/** AF_INET, AF_INET6, AF_NETLINK: these are the sandbox's own. AF_UNIX reaches every socket on the disk, AF_VSOCK the host. */
const FAMILIES = [2, 10, 16];

/** All CLONE_NEW* flags that clone(2) takes: mount, cgroup, uts, ipc, user, pid, net. */
const NEW_NAMESPACES = 0x7e020000;

/** TIOCSTI and TIOCLINUX put characters into a terminal's input. */
const TERMINAL_INPUT = [0x5412, 0x541c];

/**
 * A system call filter for bwrap's --seccomp, as the kernel reads it. A call of a foreign architecture or ABI kills the process,
 * because its numbers mean other calls. Refused calls fail with EPERM; clone3(2) with ENOSYS, because its flags lie in memory
 * that a filter cannot read, and C libraries then use clone(2). Pure.
 */
export function seccompFilter(calls: SystemCalls): Buffer {
  const { audit, refused, socket, clone, clone3, ioctl, foreignFrom } = calls;
  const foreign: Instruction[] = foreignFrom === undefined ? [] : [{ code: AT_LEAST, value: foreignFrom, yes: "kill" }];
  return assemble([
    [undefined, [load(ARCHITECTURE), { code: EQUAL, value: audit, yes: "number", no: "kill" }]],
    ["number", [load(NUMBER), ...foreign]],
    [undefined, refused.map((value) => ({ code: EQUAL, value, yes: "refuse" }))],
    [
      undefined,
      [
        { code: EQUAL, value: clone3, yes: "missing" },
        { code: EQUAL, value: socket, yes: "socket" },
        { code: EQUAL, value: clone, yes: "clone" },
        { code: EQUAL, value: ioctl, yes: "ioctl", no: "allow" },
      ],
    ],
    ["clone", [load(FIRST_ARGUMENT), { code: ANY_BIT, value: NEW_NAMESPACES, yes: "refuse", no: "allow" }]],
    ["ioctl", [load(SECOND_ARGUMENT), ...oneOf(TERMINAL_INPUT, "refuse", "allow")]],
    ["socket", [load(FIRST_ARGUMENT), ...oneOf(FAMILIES, "allow", "refuse")]],
    ["refuse", [{ code: RETURN, value: ERRNO | EPERM }]],
    ["allow", [{ code: RETURN, value: ALLOW }]],
    ["missing", [{ code: RETURN, value: ERRNO | ENOSYS }]],
    ["kill", [{ code: RETURN, value: KILL_PROCESS }]],
  ]);
}

function load(value: number): Instruction {
  return { code: LOAD, value };
}

function oneOf(values: readonly number[], yes: Label, otherwise: Label): Instruction[] {
  return values.map((value, at) => ({ code: EQUAL, value, yes, ...(at === values.length - 1 && { no: otherwise }) }));
}

/** Jumps of BPF go forward only, by at most 255 instructions. */
function assemble(blocks: readonly (readonly [Label | undefined, readonly Instruction[]])[]): Buffer {
  const places = new Map<Label, number>();
  const all: Instruction[] = [];
  for (const [label, instructions] of blocks) {
    if (label !== undefined) places.set(label, all.length);
    all.push(...instructions);
  }
  const bytes = Buffer.alloc(all.length * 8);
  const distance = (label: Label | undefined, from: number): number => {
    if (label === undefined) return 0;
    const steps = (places.get(label) ?? -1) - from - 1;
    if (steps < 0 || steps > 255) throw new RangeError(`a filter cannot jump ${steps} instructions`);
    return steps;
  };
  for (const [at, { code, value, yes, no }] of all.entries()) {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(distance(yes, at), at * 8 + 2);
    bytes.writeUInt8(distance(no, at), at * 8 + 3);
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4);
  }
  return bytes;
}
