import type { ConnectRouter } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import type { HealthState, ServingStatus } from "./health-state.ts";

/** Readiness is polled, so a watcher looks again this often. Milliseconds. */
const LOOK_AGAIN_MS = 1000;

/**
 * Serves grpc.health.v1 (https://github.com/grpc/grpc/blob/master/doc/health-checking.md): Check, Watch and List. A watch
 * never ends by itself and needs no authentication: beyond `maxWatches` at a time the next is refused with RATE_LIMITED.
 */
export function serveHealth(router: ConnectRouter, state: HealthState, maxWatches: number): void {
  let watches = 0;
  router.service(Health, {
    check({ service }) {
      const status = state.get(service);
      if (status === undefined)
        throw fault(ErrorReason.NOT_FOUND, { resource: service }, { message: "no such service" });
      return { status };
    },
    async *watch({ service }, { signal }) {
      if (watches >= maxWatches) throw tooManyWatches(maxWatches);
      watches++;
      try {
        let last: ServingStatus | undefined;
        while (!signal.aborted) {
          const status = state.get(service) ?? Status.SERVICE_UNKNOWN;
          if (status !== last) yield { status };
          last = status;
          if (state.isDraining) return; // nothing more is reported, and a drain waits for open streams
          await state.changed(signal, LOOK_AGAIN_MS);
        }
      } finally {
        watches--;
      }
    },
    list() {
      const entries = state.names().map((name) => [name, { status: state.get(name) ?? Status.UNKNOWN }] as const);
      return { statuses: Object.fromEntries(entries) };
    },
  });
}

/** How long a watcher that was refused should wait, in milliseconds. */
const WATCH_AGAIN_MS = 10_000;

function tooManyWatches(limit: number): Error {
  const metadata = { limit: String(limit), retry_after_ms: String(WATCH_AGAIN_MS) };
  const message = `at most ${limit} watches of the health may be open, and they are; use Health/Check, or try again later`;
  return fault(ErrorReason.RATE_LIMITED, metadata, { message });
}
