import { median } from "../measure/figures.ts";
import { bareStreams } from "./bare-streams.ts";
import { governedStreams } from "./governed-streams.ts";
import type { StreamSubject, Transfer } from "./stream-subject.ts";

/** What the transfers of one way come to: medians over the rounds. */
export interface StreamFigures {
  subject: string;
  what: string;
  bytes: number;
  /** Bytes that arrived in a second. */
  bytesPerSecond: number;
  elapsedMs: number;
}

/** How streams are measured. */
export interface StreamOptions {
  rounds: number;
  bytes: number;
  wanted(name: string): boolean;
  onStep(text: string): void;
}

/** Sends `bytes` along each way in turn, round by round. */
export async function measureStreams({ rounds, bytes, wanted, onStep }: StreamOptions): Promise<StreamFigures[]> {
  await using parts = new AsyncDisposableStack();
  onStep("streams: starting");
  const subjects = [...(await bareStreams(parts)), ...(await governedStreams(parts))].filter(({ name }) =>
    wanted(name),
  );
  const all = new Map<StreamSubject, Transfer[]>();
  // What is compiled by then is no part of what follows.
  for (const subject of subjects) await subject.transfer(Math.min(bytes, 32 * 1024 * 1024));
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) {
      onStep(`streams: round ${round + 1}/${rounds}  ${subject.name}`);
      all.set(subject, [...(all.get(subject) ?? []), await subject.transfer(bytes)]);
    }
  }
  return subjects.map((subject) => figuresOf(subject, all.get(subject) ?? []));
}

function figuresOf({ name, what }: StreamSubject, transfers: readonly Transfer[]): StreamFigures {
  const middle = (pick: (transfer: Transfer) => number) => median(transfers.map(pick));
  return {
    subject: name,
    what,
    bytes: middle(({ bytes }) => bytes),
    bytesPerSecond: middle(({ bytes, elapsedMs }) => (bytes / elapsedMs) * 1000),
    elapsedMs: middle(({ elapsedMs }) => elapsedMs),
  };
}

/** The figures with their ratios to the bare stream. */
export function streamTable(figures: readonly StreamFigures[]): string {
  const bare = figures.find(({ subject }) => subject === "bare stream");
  const lines = figures.map((one) =>
    [
      one.subject.padEnd(24),
      (one.bytes / 1e6).toFixed(0).padStart(8),
      (one.bytesPerSecond / 1e6).toFixed(1).padStart(9),
      (bare === undefined ? "" : (one.bytesPerSecond / bare.bytesPerSecond).toFixed(2)).padStart(8),
      ` ${one.what}`,
    ].join(" "),
  );
  const head = "way                              MB      MB/s   ÷ bare  what is between";
  return ["streams: bytes to one reader", head, ...lines].join("\n");
}
