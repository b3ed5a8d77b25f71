/** Where a profile's sample was taken. */
export interface Frame {
  functionName: string;
  /** The module's URL; empty for what is native. */
  url: string;
}

/** By module, then by the name of a native function. The first that fits counts. */
const BY_URL: readonly (readonly [RegExp, string])[] = [
  [/@bufbuild\/(cel|protovalidate|re2)|wasm:/, "validation, CEL, RE2"],
  [/@bufbuild\/protobuf|\/lib\/wire\/scratch-writer|\/gen\/ts\//, "protobuf"],
  [/\/node_modules\/kysely\//, "kysely"],
  [/\/lib\/store\/sqlite-handle|node:sqlite/, "SQLite"],
  [/node:internal\/crypto\/sig/, "Ed25519"],
  [/node:internal\/crypto\/(cipher|random)/, "AES-GCM and random numbers"],
  [/node:internal\/crypto\/hash|\/lib\/merkle\//, "SHA-256"],
  [/\/lib\/json\/|\/node_modules\/canonicalize\//, "strict JSON, RFC 8785"],
  [/node:internal\/(timers|process\/(promises|task_queues))|node:timers/, "timers, promises"],
  [
    /@connectrpc|node:(internal\/)?(http|https|http2|net|streams?|_http|abort_controller|event_target|deps\/undici)/,
    "transport",
  ],
  [/node:internal\/per_context\/domexception|node:internal\/worker\/js_transferable/, "transport"],
  [/node:internal\/(child_process|fs)|node:(fs|child_process)|\/executor\//, "files and programs"],
  [/\/(services|lib|client|cli)\//, "own code"],
];

const BY_NAME: readonly (readonly [RegExp, string])[] = [
  [/^\(garbage collector\)$/, "garbage collection"],
  [/^\(idle\)$/, "idle"],
  [/^\(program\)$/, "native code, event loop"],
  [/^(fdatasync|fsync)$/, "waiting for the disk"],
  [/^(runMicrotasks|processTicksAndRejections)$/, "timers, promises"],
  [/^(write|writev|read|open|close|fstat)/, "files and programs"],
];

/** What a sample is counted as; undefined for what counts as its caller's: native code and Node's own that is not listed. */
export function categoryOf({ url, functionName }: Frame): string | undefined {
  const table = url === "" ? BY_NAME : BY_URL;
  const text = url === "" ? functionName : url;
  return table.find(([pattern]) => pattern.test(text))?.[1];
}

/** A profile of V8's, as far as it is read here. */
export interface CpuProfile {
  nodes: readonly { id: number; callFrame: Frame; children?: readonly number[] }[];
  samples?: readonly number[];
  timeDeltas?: readonly number[];
}

/** Microseconds of the profiled thread by category, without those in which it was idle. */
export function splitOf({ nodes, samples = [], timeDeltas = [] }: CpuProfile): Map<string, number> {
  const categories = new Map<number, string>();
  // V8 lists callers before what they call.
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  for (const { id, callFrame } of nodes) {
    categories.set(id, categoryOf(callFrame) ?? categories.get(callers.get(id) ?? -1) ?? "other");
  }
  const split = new Map<string, number>();
  samples.forEach((id, at) => {
    const category = categories.get(id) ?? "other";
    if (category !== "idle") split.set(category, (split.get(category) ?? 0) + (timeDeltas[at] ?? 0));
  });
  return split;
}
