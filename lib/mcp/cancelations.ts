import type { JsonValue } from "@bufbuild/protobuf";
import { SdkError, SdkErrorCode } from "@modelcontextprotocol/server";
import { faultDetail } from "../fault/fault.ts";
import type { Cancelation } from "./server.ts";

/** The requests that clients of 2025-11-25 can cancel: by a message of its own, since a connection that ends cancels nothing. */
export interface Cancelations {
  /** A request is being answered. */
  open(client: string, requestId: string | number): Cancelation;
  /** Takes a message of a client; any other than that it cancels a request changes nothing. */
  take(client: string, message: JsonValue): void;
}

/** At this process: a client whose cancelation reaches another replica cancels by the tool `call_cancel`. */
export function createCancelations(): Cancelations {
  const open = new Map<string, AbortController>();
  const keyOf = (client: string, requestId: unknown) => JSON.stringify([client, requestId]);
  return {
    open(client, requestId) {
      const key = keyOf(client, requestId);
      const controller = new AbortController();
      // A client that uses an id twice can cancel the later one only.
      open.set(key, controller);
      const release = () => {
        if (open.get(key) === controller) open.delete(key);
      };
      return { signal: controller.signal, release };
    },
    take(client, message) {
      if (typeof message !== "object" || message === null || Array.isArray(message)) return;
      const { method, params } = message;
      if (method !== "notifications/cancelled" || typeof params !== "object" || params === null) return;
      if (!Array.isArray(params)) open.get(keyOf(client, params.requestId))?.abort();
    },
  };
}

/**
 * Cancels when the connection is gone, for 2026-07-28 over HTTP: unless this server ends it, which says so by a fault. What
 * waits for a person then waits over a restart as well.
 */
export function canceledByDeparture(signal: AbortSignal): Cancelation {
  return canceledUnless(signal, (reason) => faultDetail(reason) !== undefined);
}

/** Cancels with the request's signal, unless that is aborted because the connection is closed: for 2025-11-25 over stdio. */
export function canceledByMessage(signal: AbortSignal): Cancelation {
  return canceledUnless(
    signal,
    (reason) => SdkError.isInstance(reason) && reason.code === SdkErrorCode.ConnectionClosed,
  );
}

function canceledUnless(signal: AbortSignal, isOther: (reason: unknown) => boolean): Cancelation {
  const controller = new AbortController();
  const stop = () => {
    if (!isOther(signal.reason)) controller.abort();
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true });
  return { signal: controller.signal, release: () => signal.removeEventListener("abort", stop) };
}
