import { setTimeout as sleep } from "node:timers/promises";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { isRetryable } from "../../lib/fault/fault.ts";
import { readMarks } from "../chaos/evidence.ts";
import type { OnDisk } from "./on-disk.ts";
import type { Subject } from "./subject.ts";

/** One call, and the kill that met it. */
export interface KilledCall {
  id: string;
  /** Where the process was killed. */
  point: string;
  /** The end that the caller was given before the kill, where it was; and the one when it asked again. */
  answers: CompleteCall[];
  /** How the registry shows the call in the end. */
  shown: CompleteCall;
  /** Whether the program had run at the moment of the kill, and what was on disk then. */
  hadRun: boolean;
  onDisk: OnDisk;
}

/** From a call's answer until everything about it is on disk, in milliseconds. */
const AFTER_MS = 800;

/** How often a point is waited for. */
const MAX_TRIES = 4;

/** How long the kill may take from when the call was asked for, in milliseconds. */
const PATIENCE_MS = 1_500;

/**
 * Runs one call to learn its points, then a call for each of them: it is asked for, the process is killed there and started
 * again, and the call is asked for again with the same id.
 *
 * @param options.take which points to do, by their name and number.
 */
export async function killAtEachPoint(
  subject: Subject,
  options: { name: string; take(point: string, at: number): boolean; onDisk(id: string): Promise<OnDisk> },
): Promise<KilledCall[]> {
  const points = await pointsOf(subject, `${options.name}-all`);
  const calls: KilledCall[] = [];
  for (const [at, point] of points.entries()) {
    if (!options.take(point, at)) continue;
    const killed = await killAt(subject, point, `${options.name}-${at}`);
    if (killed === undefined) continue;
    const { id, first } = killed;
    const before = await first;
    const hadRun = (await readMarks(subject.marks)).has(id);
    const found = await options.onDisk(id);
    await subject.start();
    const again = await markUntilEnded(subject, id);
    const { call } = await subject.registry.getCall({ callId: id });
    if (call === undefined) throw new Error(`${id} is lost`);
    const answers = before === undefined ? [again] : [before, again];
    calls.push({ id, point, answers, shown: completeCall(call), hadRun, onDisk: found });
  }
  return calls;
}

/**
 * Kills the process at a point of a call; of another one, where what came at the same time shared a commit with it. Undefined
 * where none of several calls has the point: the one that was asked first took so long that its state was written once more.
 */
async function killAt(subject: Subject, point: string, name: string) {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const id = `${name}-${tries}`;
    await subject.killAt(point);
    const first = mark(subject, id).catch(() => undefined);
    if (await subject.died(PATIENCE_MS)) return { id, first };
  }
  await subject.passed();
  return undefined;
}

async function pointsOf(subject: Subject, id: string): Promise<string[]> {
  await subject.killAt();
  await mark(subject, id);
  await sleep(AFTER_MS);
  return subject.passed();
}

/** Appends the call's id to a file, so that a program that ran twice can be seen. */
async function mark({ registry, marks }: Subject, id: string): Promise<CompleteCall> {
  const params = { argv: ["tee", "-a", marks], stdin: `${id}\n` };
  const { call } = await registry.callTool({ tool: "exec", params, callId: id });
  if (call === undefined) throw new Error("there is no call in the answer");
  return completeCall(call);
}

/** A caller that tries again with the same id, as one does whose service has died. */
async function markUntilEnded(subject: Subject, id: string): Promise<CompleteCall> {
  for (let tries = 0; ; tries++) {
    try {
      const call = await mark(subject, id);
      if (isEnd(call.status.state)) return call;
    } catch (error: unknown) {
      if (!isRetryable(error) || tries === 100) throw error;
    }
    await sleep(50);
  }
}
