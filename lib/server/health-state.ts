import { HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";

/** A status of grpc.health.v1. */
export type ServingStatus = Status;

/** What is healthy, by service name; the empty name is the whole server. */
export interface HealthState {
  /** Whether requests are taken: not while the server starts or drains. Dependencies may be unavailable all the same. */
  readonly isReady: boolean;
  /** Dependencies that the server does not reach, by name: nothing is SERVING then. */
  readonly unavailable: readonly string[];
  /** Undefined for a service that is not served. */
  get(service: string): ServingStatus | undefined;
  set(service: string, status: ServingStatus): void;
  /** Every known service, the whole server among them. */
  names(): string[];
  /** Everything is NOT_SERVING from now on, whatever is set later. */
  drain(): void;
  readonly isDraining: boolean;
  /** Resolves at the next change, after `ms`, or when the signal aborts. */
  changed(signal: AbortSignal, ms: number): Promise<void>;
}

/**
 * Health that starts as SERVING for the whole server.
 *
 * @param ready Asked at each look: false makes every service NOT_SERVING. Default: always ready.
 * @param unavailable Asked at each look: the dependencies that the server does not reach. Default: nothing.
 */
export function createHealthState(
  ready: () => boolean = () => true,
  unavailable: () => readonly string[] = () => [],
): HealthState {
  const statuses = new Map<string, ServingStatus>([["", Status.SERVING]]);
  const waiting = new Set<() => void>();
  let isDraining = false;
  const wake = (): void => {
    for (const resolve of [...waiting]) resolve();
  };
  const isReady = () => ready() && !isDraining;
  return {
    get isReady() {
      return isReady();
    },
    get unavailable() {
      return unavailable();
    },
    get(service) {
      const status = statuses.get(service);
      return status === undefined || (isReady() && unavailable().length === 0) ? status : Status.NOT_SERVING;
    },
    set(service, status) {
      statuses.set(service, status);
      wake();
    },
    names: () => [...statuses.keys()],
    drain() {
      isDraining = true;
      wake();
    },
    get isDraining() {
      return isDraining;
    },
    changed: (signal, ms) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiting.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, ms);
        waiting.add(done);
        signal.addEventListener("abort", done);
        if (signal.aborted) done();
      }),
  };
}
