/** What a server's version means for the bus. */
export type NatsVersion = { kind: "supported"; degraded: string[] } | { kind: "refused"; message: string };

const LACKS: [since: Version, sentence: string][] = [
  [
    [2, 11, 0],
    "before 2.11 a server flushes acknowledged events to disk every two minutes at best: a power cut loses some",
  ],
  [[2, 12, 7], "before 2.12.7 a server has known authorization flaws: keep it on a private network"],
];

const OLDEST: Version = [2, 9, 0];

type Version = [major: number, minor: number, patch: number];

/** Whether the version that a NATS server reports can be used. Duplicate windows work as needed from 2.9 on. */
export function checkNatsVersion(reported: string): NatsVersion {
  const version = parse(reported);
  if (!version || isBefore(version, OLDEST)) {
    return { kind: "refused", message: `the NATS server's version is "${reported}"; 2.9 or later is needed` };
  }
  return { kind: "supported", degraded: LACKS.filter(([since]) => isBefore(version, since)).map(([, text]) => text) };
}

function parse(text: string): Version | undefined {
  const [, major, minor, patch] = /^v?(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor), Number(patch)];
}

function isBefore(a: Version, b: Version): boolean {
  const i = a.findIndex((part, index) => part !== b[index]);
  return i !== -1 && (a[i] ?? 0) < (b[i] ?? 0);
}
