import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { EndedCall } from "./calls.ts";
import type { GovernedCall } from "./governed-call.ts";
import type { LiveCall, OpenCall } from "./live-call.ts";
import type { ReceivedCall } from "./receive.ts";
import type { CallStore } from "./store.ts";

/** How many held calls of one principal, device and tool are looked at where other replicas may own them. */
const MAX_STORED = 100;

/** The held calls that a request which asks for the same may become. */
export interface HeldTwins {
  /** A held call that asks for the same as this new one, whichever replica owns it. */
  find(received: ReceivedCall): Promise<OpenCall | EndedCall | undefined>;
  /** Policy decides about a new call until `decided` resolves. */
  deciding(received: ReceivedCall, decided: Promise<unknown>): void;
}

/** Dependencies of finding them. */
export interface TwinFacts {
  live: ReadonlyMap<string, LiveCall>;
  known(callId: string): Promise<OpenCall | EndedCall | undefined>;
  store: Pick<CallStore, "list">;
  /** True where no other replica uses the database. */
  alone: boolean;
}

/**
 * Two requests for the same at one instant are one call as well, at one replica: the second waits until it is known whether the
 * first is held. Not for a tool that only reads: it is seldom held, and many at once are what it is for.
 */
export function createHeldTwins({ live, known, store, alone }: TwinFacts): HeldTwins {
  const open = new Map<string, Promise<unknown>>();
  return {
    async find(received) {
      const { call } = received;
      const key = keyOf(call);
      await open.get(key);
      const isTwin = (other: GovernedCall) => other.status.state === CallState.HELD && keyOf(other) === key;
      for (const one of live.values()) if (isTwin(one.call)) return one;
      if (alone) return undefined;
      const { deviceId, tool, principalId } = call.spec;
      const stored = await store.list({ state: CallState.HELD, deviceId, tool, principalId, limit: MAX_STORED });
      const found = stored.calls.find((other) => isTwin(other.call));
      return found && (await known(found.call.id));
    },
    deciding({ call, tool }, decided) {
      if (tool.spec.annotations.readOnly) return;
      const key = keyOf(call);
      const settled = decided
        .catch(() => undefined)
        .then(() => {
          if (open.get(key) === settled) open.delete(key);
        });
      open.set(key, settled);
    },
  };
}

function keyOf({ spec }: GovernedCall): string {
  return JSON.stringify([spec.principalId, spec.deviceId, spec.tool, spec.argsDigest]);
}
