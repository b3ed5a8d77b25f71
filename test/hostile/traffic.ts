import type { Random } from "../chaos/random.ts";
import { http1Request } from "./http1.ts";
import { CLIENT_PREFACE, http2Flood, http2Request, oddFrame } from "./http2.ts";
import type { Target, Visit } from "./visit.ts";

/** What hostile clients have to work with. */
export interface TrafficOptions {
  random: Random;
  targets: readonly Target[];
  /** Tokens that some of them show: one that is let in takes them past the gate. */
  tokens: readonly string[];
  /** Certificates that some of them show on TLS ports, PEM. */
  certificates: readonly { cert: string; key: string }[];
}

/** What is wrong with a connection, and how often it is that. */
const KINDS = {
  /** Whole requests, several in one write. */
  pipelined: 30,
  /** One that ends at any byte. */
  cut: 12,
  /** Requests with flipped bytes. */
  flipped: 12,
  /** Streams of HTTP/2, whole, open, or reset. */
  streams: 24,
  /** The same with flipped bytes. */
  flippedFrames: 10,
  oddFrames: 6,
  floods: 2,
  /** Bytes of no protocol; on a TLS port, cleartext. */
  noise: 4,
};

/** Makes connections, one after another, for ever. The same seed makes the same. */
export function* createTraffic(options: TrafficOptions): Generator<Visit, never> {
  const { random, targets } = options;
  for (let number = 0; ; number++) {
    const target = random.pick(targets);
    const kind = random.weighted(KINDS);
    const { bytes, mutants } = CONTENT[kind](options, target, number);
    const noTls = !target.isSecure || kind === "noise";
    yield {
      kind,
      target,
      ...(noTls ? {} : { tls: tlsFor(options, kind) }),
      pieces: inPieces(random, bytes),
      lingerMs: Math.floor(random.between(0, 11)),
      listens: random.next() < 0.5,
      end: random.next() < 0.6 ? "reset" : "fin",
      mutants,
    };
  }
}

type Content = (options: TrafficOptions, target: Target, number: number) => { bytes: Buffer; mutants: number };

const CONTENT: Record<keyof typeof KINDS, Content> = {
  pipelined: (options, target) => several(options, target, 2, 8),
  cut({ random, tokens }, { paths }, number) {
    const whole = http1Request(random, random.pick(paths), tokens);
    return { bytes: whole.subarray(0, number % whole.length), mutants: 1 };
  },
  flipped(options, target) {
    const { bytes, mutants } = several(options, target, 1, 4);
    return { bytes: flip(options.random, bytes), mutants };
  },
  streams: (options, target) => streams(options, target, 1, 16),
  flippedFrames(options, target) {
    const { bytes, mutants } = streams(options, target, 1, 8);
    return { bytes: flip(options.random, bytes, CLIENT_PREFACE.length), mutants };
  },
  oddFrames({ random }) {
    const mutants = Math.ceil(random.between(0, 6));
    return {
      bytes: Buffer.concat([CLIENT_PREFACE, ...Array.from({ length: mutants }, () => oddFrame(random))]),
      mutants,
    };
  },
  floods: ({ random }) => ({ bytes: Buffer.concat([CLIENT_PREFACE, http2Flood(random)]), mutants: 1 }),
  noise({ random }) {
    const bytes = Buffer.from(Array.from({ length: Math.floor(random.between(0, 300)) }, () => random.between(0, 256)));
    return { bytes, mutants: 1 };
  },
};

function several({ random, tokens }: TrafficOptions, { paths }: Target, from: number, to: number) {
  const mutants = Math.floor(random.between(from, to));
  // The same one twice is a case of its own: both are refused at the same place.
  const first = http1Request(random, random.pick(paths), tokens);
  const rest = Array.from({ length: mutants - 1 }, () =>
    random.next() < 0.5 ? first : http1Request(random, random.pick(paths), tokens),
  );
  return { bytes: Buffer.concat([first, ...rest]), mutants };
}

function streams({ random, tokens }: TrafficOptions, { paths }: Target, from: number, to: number) {
  const mutants = Math.floor(random.between(from, to));
  const requests = Array.from({ length: mutants }, (_, index) =>
    http2Request(random, 2 * index + 1, random.pick(paths), tokens),
  );
  return { bytes: Buffer.concat([CLIENT_PREFACE, ...requests]), mutants };
}

/** The bytes with one to eight of them changed, from a place on. */
function flip(random: Random, bytes: Buffer, from = 0): Buffer {
  const changed = Buffer.from(bytes);
  for (let left = Math.ceil(random.between(0, 8)); left > 0; left--) {
    const at = Math.floor(random.between(from, changed.length));
    if (at < changed.length) changed[at] = random.between(0, 256);
  }
  return changed;
}

function inPieces(random: Random, bytes: Buffer): Buffer[] {
  if (random.next() < 0.7 || bytes.length < 2) return [bytes];
  const at = Math.floor(random.between(1, bytes.length));
  return [bytes.subarray(0, at), bytes.subarray(at)];
}

function tlsFor({ random, certificates }: TrafficOptions, kind: keyof typeof KINDS): NonNullable<Visit["tls"]> {
  const isHttp2 = kind === "streams" || kind === "flippedFrames" || kind === "oddFrames" || kind === "floods";
  // Now and then the other protocol than was agreed on.
  const speaksHttp2 = random.next() < 0.9 ? isHttp2 : !isHttp2;
  const shown = random.next() < 0.3 && certificates.length > 0 ? random.pick(certificates) : {};
  return { protocols: [speaksHttp2 ? "h2" : "http/1.1"], ...shown };
}
