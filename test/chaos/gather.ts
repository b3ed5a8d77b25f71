import { join } from "node:path";
import type { CompleteCall } from "../../client/complete-call.ts";
import type { Distributed } from "../../testkit/distributed.ts";
import { readLedger, readMarks, readRecords } from "./evidence.ts";
import type { PlannedCall } from "./planned-calls.ts";
import type { Evidence } from "./truth.ts";

/** All that is known in the end. */
export interface Gathered {
  /** About each call. */
  evidence: Evidence[];
  /** How many records the audit log has. */
  records: number;
}

/** What those said who had to be asked before. */
export interface Said {
  plannedCalls: readonly PlannedCall[];
  /** The id under which a call is stored. */
  storedId(planned: PlannedCall): string;
  /** The ends that callers were given, by call. */
  reported: ReadonlyMap<string, CompleteCall>;
  /** How each registry shows each call, in the order of the planned calls. */
  shown: readonly (readonly (CompleteCall | undefined)[])[];
}

/** Where each device keeps the witness of what ran on it, by the device's name. */
export function marksOf({ devices }: Distributed): Map<string, string> {
  return new Map(devices.map(({ name, work }) => [name, join(work, "marks")]));
}

/** Stops the devices and puts together what witnesses, ledgers, registries, callers and the audit log say. */
export async function gather(plane: Distributed, { plannedCalls, storedId, reported, shown }: Said): Promise<Gathered> {
  for (const { process } of plane.devices) await process.stop();
  const records = await readRecords(plane.policyDatabase);
  const ledgers = new Map<string, Awaited<ReturnType<typeof readLedger>>>();
  for (const { name, stateDir } of plane.devices) ledgers.set(name, await readLedger(stateDir));
  // A call that ran on another device than its own was executed, too.
  const ran = new Map<string, number>();
  for (const file of marksOf(plane).values()) {
    for (const [id, times] of await readMarks(file)) ran.set(id, (ran.get(id) ?? 0) + times);
  }
  return {
    evidence: plannedCalls.map((planned, n) => ({
      planned,
      reported: reported.get(planned.id),
      shown: shown[n] ?? [],
      marks: ran.get(planned.id) ?? 0,
      ledger: ledgers.get(planned.device)?.get(storedId(planned)),
      records: records.get(storedId(planned)) ?? [],
    })),
    records: [...records.values()].reduce((sum, ofCall) => sum + ofCall.length, 0),
  };
}
