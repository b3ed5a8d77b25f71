import { createRandom, type Random } from "./random.ts";

/** A call that is planned, and what disturbs it. */
export interface PlannedCall {
  id: string;
  kind: PlannedKind;
  /** When it is asked for the first time, in milliseconds from the start. */
  atMs: number;
  /** The device's name. */
  device: string;
  /** Operators run programs at once; an agent's wait for a human. */
  as: "operator" | "agent";
  /** Which RPC. */
  way: "unary" | "stream";
  argv: string[];
  stdin?: string;
  /** When it is canceled, in milliseconds from when it is asked for. */
  cancelAfterMs?: number;
  /** What the human says, where one is asked. */
  answer?: "yes" | "no";
  /** How long it is kept for a device that is offline, in milliseconds. */
  queueMs?: number;
}

/** How often each kind of call is wanted, in hundredths. */
const KINDS = { quick: 50, streaming: 10, long: 8, failing: 4, held: 10, canceled: 8, canceledHeld: 3, queued: 7 };

/** What a call does, or has to go through. */
export type PlannedKind = keyof typeof KINDS;

/** What planned calls are made from. */
export interface PlannedCallOptions {
  calls: number;
  ms: number;
  seed: number;
  /** Where each device keeps its witness, by the device's name. */
  marks: ReadonlyMap<string, string>;
}

/** All calls of a run, by when they are wanted. Each appends its own id, once, to the witness on its device. */
export function planCalls({ calls, ms, seed, marks }: PlannedCallOptions): PlannedCall[] {
  const random = createRandom(seed);
  return Array.from({ length: calls }, (_, n) => {
    const [device, file] = random.pick([...marks]);
    return {
      id: `chaos-${seed}-${n}`,
      atMs: (n / calls) * ms,
      device,
      way: random.pick(["unary", "stream"]),
      ...oneOfKind(random.weighted(KINDS), { id: `chaos-${seed}-${n}`, file, random }),
    };
  });
}

interface Parts {
  id: string;
  file: string;
  random: Random;
}

function oneOfKind(kind: PlannedKind, parts: Parts): Pick<PlannedCall, "kind" | "as" | "argv"> & Partial<PlannedCall> {
  const { random, id, file } = parts;
  const marking = (then: string) => ({ kind, as: "operator" as const, argv: script(parts, then) });
  switch (kind) {
    case "quick":
      return { kind, as: "operator", argv: ["tee", "-a", file], stdin: `${id}\n` };
    case "streaming":
      return marking("for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done");
    case "long":
      return marking(`sleep ${random.between(1, 5).toFixed(1)}`);
    case "failing":
      return marking("echo no >&2; exit 3");
    case "held":
      return { ...marking(":"), as: "agent", answer: random.next() < 0.8 ? "yes" : "no" };
    case "canceled":
      return { ...marking("sleep 20"), cancelAfterMs: random.between(0, 3000) };
    case "canceledHeld":
      return { ...marking(":"), as: "agent", cancelAfterMs: random.between(0, 3000) };
    case "queued":
      return { ...marking("sleep 0.2"), queueMs: 600_000 };
  }
}

/** Marks first: what is killed in the middle has left its mark already. */
function script({ id, file }: Parts, then: string): string[] {
  return ["bash", "-c", `echo "$1" >> "$2"; ${then}`, "mark", id, file];
}
