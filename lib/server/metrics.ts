import type { DescMethod } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  type Histogram as BoundHistogram,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from "prom-client";
import { connectionErrorCount } from "./connection-errors.ts";

/** The Prometheus metrics of one server. A service adds its own to `registry`. */
export interface Metrics {
  readonly registry: Registry;
  begin(method: DescMethod): void;
  /** `code` undefined: ok. */
  end(method: DescMethod, code: Code | undefined, ms: number): void;
  /** A request that is no RPC was answered. */
  answered(status: number): void;
}

/** Seconds: a governed call is a few milliseconds, a tool may take an hour. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 600];

/** What is counted for one RPC. */
interface Tally {
  inFlight: number;
  /** By code; ok under 0. */
  readonly ended: (number | undefined)[];
  readonly duration: BoundHistogram.Internal<"service" | "method">;
}

/**
 * Counts reeve_rpc_total{service,method,code}, reeve_rpc_duration_seconds{service,method} and
 * reeve_rpc_in_flight{service,method}, and reeve_http_requests_total{status} of plain paths, with the process metrics of prom-client unless `process` is false. Counts are kept
 * as numbers and become labels only when they are asked for.
 */
export function createMetrics(options: { process?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.process ?? true) {
    collectDefaultMetrics({ register: registry });
    exportConnectionErrors(registry);
  }
  const tallies = new Map<DescMethod, Tally>();
  const duration = exportTallies(registry, tallies);
  const plain = new Counter({
    name: "reeve_http_requests_total",
    help: "Requests of plain HTTP that were answered, health and metrics apart, by status",
    labelNames: ["status"],
    registers: [registry],
  });
  const tallyOf = (method: DescMethod): Tally => {
    let tally = tallies.get(method);
    if (tally === undefined) {
      tally = { inFlight: 0, ended: [], duration: duration.labels(method.parent.typeName, method.name) };
      tallies.set(method, tally);
    }
    return tally;
  };
  return {
    registry,
    begin(method) {
      tallyOf(method).inFlight++;
    },
    end(method, code, ms) {
      const tally = tallyOf(method);
      tally.inFlight--;
      tally.ended[code ?? 0] = (tally.ended[code ?? 0] ?? 0) + 1;
      tally.duration.observe(ms / 1000);
    },
    answered(status) {
      plain.inc({ status });
    },
  };
}

function exportConnectionErrors(registry: Registry): void {
  new Counter({
    name: "reeve_connection_errors_total",
    help: "Errors of connections that nothing in the process caught, and that it went on after",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(connectionErrorCount());
    },
  });
}

function exportTallies(registry: Registry, tallies: ReadonlyMap<DescMethod, Tally>): Histogram<"service" | "method"> {
  const registers = [registry];
  new Counter({
    name: "reeve_rpc_total",
    help: "RPCs that ended, by the code that the caller got",
    labelNames: ["service", "method", "code"],
    registers,
    collect() {
      this.reset();
      for (const [method, { ended }] of tallies) {
        for (const [code, count] of ended.entries()) {
          if (count !== undefined) this.inc({ ...labelsOf(method), code: codeText(code) }, count);
        }
      }
    },
  });
  new Gauge({
    name: "reeve_rpc_in_flight",
    help: "RPCs that are being served",
    labelNames: ["service", "method"],
    registers,
    collect() {
      for (const [method, { inFlight }] of tallies) this.set(labelsOf(method), inFlight);
    },
  });
  return new Histogram({
    name: "reeve_rpc_duration_seconds",
    help: "How long RPCs took, streams from their first to their last byte",
    labelNames: ["service", "method"],
    buckets: BUCKETS,
    registers,
  });
}

function labelsOf(method: DescMethod): { service: string; method: string } {
  return { service: method.parent.typeName, method: method.name };
}

/** The Connect name of a code, such as "not_found"; "ok" for none. */
export function codeText(code: Code | 0 | undefined): string {
  return code === undefined || code === 0 ? "ok" : codeToString(code);
}
