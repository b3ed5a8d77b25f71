/** One input: the tool, the JSON text, and what has to become of it. */
export interface AgreementRow {
  tool: string;
  input: string;
  /** Both must accept, both must refuse, or a difference that is allowed. */
  expected: "accept" | "refuse" | Difference;
}

/** Why the schema and the server may differ. The first three are looser in the schema, the others stricter. */
export type Difference = keyof typeof DIFFERENCES;

/** Who accepts what the other refuses. */
export const DIFFERENCES = {
  /** JSON Schema cannot evaluate CEL. */
  cel: "schema",
  /** max_bytes counts bytes of UTF-8, maxLength counts code points. */
  "byte length": "schema",
  /** Text that only looks like the format: base64 of an impossible length, a date in lower case, digits past the limit. */
  "text form": "schema",
  /** ProtoJSON takes the .proto file's field names too. One way to say it is enough for a model. */
  "proto name": "server",
  /** ProtoJSON takes null for "not set". */
  null: "server",
  /** ProtoJSON takes numbers as strings, and reads more ways to write them than digits. */
  "number as text": "server",
  /** ProtoJSON takes an enum value's number, and its UNSPECIFIED value. */
  "enum value": "server",
  /** ProtoJSON ignores white space in base64, and rolls the 30th of February over. */
  "lenient text": "server",
} as const satisfies Record<string, "schema" | "server">;

const row = (tool: string, expected: AgreementRow["expected"], ...inputs: string[]): AgreementRow[] =>
  inputs.map((input) => ({ tool, input, expected }));

const EURO = "\u20ac";

/** The table. */
export const AGREEMENT: readonly AgreementRow[] = [
  ...row("device.ping", "accept", "{}", '{"text":""}', '{"text":"hello"}', JSON.stringify({ text: "x".repeat(4096) })),
  ...row("device.ping", "refuse", '{"text":1}', '{"text":["a"]}', '{"Text":"a"}', '{"text":"a","more":1}', "[]", '"a"'),
  ...row(
    "device.ping",
    "refuse",
    JSON.stringify({ text: "x".repeat(4097) }),
    "null",
    "1",
    '{"__proto__":{"text":"a"}}',
  ),
  ...row("device.ping", "byte length", JSON.stringify({ text: EURO.repeat(1366) })),
  ...row("device.ping", "null", '{"text":null}'),

  ...row(
    "exec",
    "accept",
    '{"argv":["uname","-a"]}',
    '{"argv":[""]}',
    '{"argv":["a"],"cwd":""}',
    '{"argv":["a"],"cwd":"/"}',
  ),
  ...row("exec", "accept", '{"argv":["a"],"env":{}}', '{"argv":["a"],"env":{"TZ":"UTC","_x1":""}}'),
  ...row(
    "exec",
    "accept",
    '{"argv":["a"],"timeoutMs":0}',
    '{"argv":["a"],"timeoutMs":3600000}',
    '{"argv":["a"],"timeoutMs":1e3}',
  ),
  ...row("exec", "accept", JSON.stringify({ argv: Array(256).fill("a") })),
  ...row("exec", "refuse", "{}", '{"argv":[]}', '{"argv":"ls"}', '{"argv":[1]}', '{"argv":[null]}', '{"argv":[["a"]]}'),
  ...row("exec", "refuse", JSON.stringify({ argv: Array(257).fill("a") }), JSON.stringify({ argv: ["a\0b"] })),
  ...row("exec", "refuse", '{"argv":["a"],"cwd":"tmp"}', '{"argv":["a"],"cwd":1}', '{"argv":["a"],"env":[]}'),
  ...row(
    "exec",
    "refuse",
    '{"argv":["a"],"env":{"1A":"x"}}',
    '{"argv":["a"],"env":{"A":1}}',
    '{"argv":["a"],"env":{"":"x"}}',
  ),
  ...row(
    "exec",
    "refuse",
    '{"argv":["a"],"env":{"A":null}}',
    '{"argv":["a"],"timeoutMs":3600001}',
    '{"argv":["a"],"timeoutMs":-1}',
  ),
  ...row(
    "exec",
    "refuse",
    '{"argv":["a"],"timeoutMs":1.5}',
    '{"argv":["a"],"timeoutMs":true}',
    '{"argv":["a"],"Argv":["b"]}',
  ),
  ...row(
    "exec",
    "refuse",
    JSON.stringify({ argv: ["a"], env: Object.fromEntries(names(65).map((name) => [name, ""])) }),
  ),
  ...row(
    "exec",
    "accept",
    JSON.stringify({ argv: ["a"], env: Object.fromEntries(names(64).map((name) => [name, ""])) }),
  ),
  ...row("exec", "proto name", '{"argv":["a"],"timeout_ms":5}'),
  ...row("exec", "number as text", '{"argv":["a"],"timeoutMs":"5"}'),
  ...row("exec", "null", '{"argv":["a"],"cwd":null}'),

  ...row("shell.eval", "accept", '{"command":"ls | wc -l"}', '{"command":"a\\nb"}'),
  ...row("shell.eval", "refuse", "{}", '{"command":""}', JSON.stringify({ command: "a".repeat(8193) })),

  ...row("fs.move", "accept", '{"path":"/a","to":"/b"}', '{"path":"/a","to":"/b","overwrite":true}'),
  ...row(
    "fs.move",
    "refuse",
    '{"path":"/a"}',
    '{"to":"/a"}',
    '{"path":"/a","to":"b"}',
    '{"path":"/a","to":"/b\\u0000"}',
  ),
  ...row("fs.search", "accept", '{"path":"/a","pattern":"x"}', '{"path":"/a","pattern":"x","globs":["*.ts","!a/**"]}'),
  ...row(
    "fs.search",
    "refuse",
    '{"path":"/a"}',
    '{"path":"/a","pattern":"a\\nb"}',
    '{"path":"/a","pattern":"x","globs":[""]}',
  ),
  ...row(
    "fs.edit",
    "accept",
    '{"path":"/a","oldText":"x","newText":"y"}',
    '{"path":"/a","oldText":"x","expectedCount":3}',
  ),
  ...row("fs.edit", "refuse", '{"path":"/a","newText":"y"}', '{"path":"/a","oldText":"x","expectedCount":10001}'),
  ...row("fs.edit", "cel", '{"path":"/a","oldText":"x","newText":"x"}'),
  ...row("fs.read", "cel", '{"path":"/a","offset":1,"firstLine":2}'),
  ...row("fs.undo", "accept", '{"call":"call-1"}'),
  ...row("fs.undo", "refuse", "{}", '{"call":""}'),

  ...row("fs.read", "accept", '{"path":"/etc/hosts"}', '{"path":"/a","offset":5}', '{"path":"/a","offset":"5"}'),
  ...row("fs.read", "accept", '{"path":"/a","offset":9007199254740991}', '{"path":"/a","maxBytes":262144}'),
  ...row(
    "fs.read",
    "refuse",
    "{}",
    '{"path":""}',
    '{"path":"etc"}',
    '{"path":"/a","offset":-1}',
    '{"path":"/a","offset":"-1"}',
  ),
  ...row(
    "fs.read",
    "refuse",
    '{"path":"/a","offset":1.5}',
    '{"path":"/a","offset":9007199254740992}',
    '{"path":"/a","offset":"x"}',
  ),
  ...row(
    "fs.read",
    "refuse",
    '{"path":"/a","offset":""}',
    '{"path":"/a","maxBytes":262145}',
    '{"path":"/a","offset":{}}',
  ),
  ...row("fs.read", "text form", '{"path":"/a","offset":"9007199254740992"}'),
  ...row("fs.read", "number as text", '{"path":"/a","offset":"0x10"}', '{"path":"/a","offset":" 1"}'),

  ...row(
    "fs.write",
    "accept",
    '{"path":"/a","text":"b"}',
    '{"path":"/a","data":"AA=="}',
    '{"path":"/a","data":"AA"}',
    '{"path":"/a"}',
  ),
  ...row(
    "fs.write",
    "accept",
    '{"path":"/a","data":"-_A="}',
    '{"path":"/a","mode":"WRITE_MODE_APPEND"}',
    '{"path":"/a","permissions":511}',
  ),
  ...row(
    "fs.write",
    "refuse",
    '{"path":"/a","mode":"APPEND"}',
    '{"path":"/a","mode":"write_mode_append"}',
    '{"path":"/a","mode":true}',
  ),
  ...row(
    "fs.write",
    "refuse",
    '{"path":"/a","data":"\u00e9"}',
    '{"path":"/a","permissions":512}',
    '{"path":"/a","createFolders":"yes"}',
  ),
  ...row("fs.write", "refuse", JSON.stringify({ path: "/a", data: "AAAA".repeat(349_527) })),
  ...row("fs.write", "cel", '{"path":"/a","text":"b","data":"AA=="}'),
  ...row("fs.write", "text form", '{"path":"/a","data":"A"}'),
  ...row("fs.write", "enum value", '{"path":"/a","mode":1}', '{"path":"/a","mode":"WRITE_MODE_UNSPECIFIED"}'),
  ...row("fs.write", "lenient text", '{"path":"/a","data":"A A="}'),

  ...row(
    "docker.logs",
    "accept",
    '{"container":"web","since":"2026-01-02T03:04:05Z"}',
    '{"container":"a","since":"2026-01-02T03:04:05.5+01:00"}',
  ),
  ...row(
    "docker.logs",
    "refuse",
    '{"container":"web","since":"yesterday"}',
    '{"container":"web","since":1}',
    '{"container":"-x"}',
  ),
  ...row(
    "docker.logs",
    "refuse",
    '{"container":"web","since":"2026-01-02"}',
    '{"container":"web","since":{"seconds":1}}',
  ),
  ...row("docker.logs", "text form", '{"container":"web","since":"2026-01-02t03:04:05z"}'),
  ...row("docker.logs", "lenient text", '{"container":"web","since":"2026-02-30T00:00:00Z"}'),

  ...row("proc.kill", "accept", '{"pid":2}', '{"pid":4194304,"signal":"SIGNAL_KILL","waitMs":60000}'),
  ...row(
    "proc.kill",
    "refuse",
    "{}",
    '{"pid":0}',
    '{"pid":1}',
    '{"pid":4194305}',
    '{"pid":2,"signal":"KILL"}',
    '{"pid":2,"waitMs":60001}',
  ),

  ...row("pkg.install", "accept", '{"packages":["ripgrep"]}', '{"packages":["libssl-dev","g++"],"dryRun":true}'),
  ...row(
    "pkg.install",
    "refuse",
    "{}",
    '{"packages":[]}',
    '{"packages":["a","a"]}',
    '{"packages":["-y"]}',
    '{"packages":[""]}',
  ),

  ...row(
    "git.clone",
    "accept",
    '{"url":"https://example.com/r.git","path":"/r"}',
    '{"url":"git@example.com:r","path":"/r","depth":1}',
  ),
  ...row(
    "git.clone",
    "refuse",
    '{"url":"file:///r","path":"/r"}',
    '{"url":"https://a b","path":"/r"}',
    '{"url":"https://a","path":"/r","branch":"-x"}',
  ),
  ...row("git.commit", "accept", '{"path":"/r","message":"m","paths":["a/b"],"authorEmail":"a@example.com"}'),
  ...row(
    "git.commit",
    "refuse",
    '{"path":"/r","message":"m","paths":["/a"]}',
    '{"path":"/r"}',
    '{"path":"/r","message":"m","authorName":"<x>"}',
  ),
];

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `V${i}`);
}
