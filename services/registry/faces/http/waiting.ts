import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { GovernedCall } from "../../calls/governed-call.ts";

/** Where a call can be asked for again. */
export function locationOf({ id }: GovernedCall): string {
  return `/calls/${encodeURIComponent(id)}`;
}

/** What a call that has not ended waits for, and where its end is to be had, for a person or a model. */
export function waitingText(call: GovernedCall): string {
  const again = `GET ${locationOf(call)} returns how it stands and, once it has ended, how it ended; do not send it again`;
  switch (call.status.state) {
    case CallState.HELD:
      return (
        `nothing has run yet: a person has to decide about approval ${call.status.approval?.id} first, ` +
        `for example with \`reeve approval approve ${call.status.approval?.id}\`. The call runs by itself once it is approved. ${again}`
      );
    case CallState.QUEUED:
      return `nothing has run yet: the call is queued until its device is back, and is sent to it then. ${again}`;
    default:
      return `the call is under way. ${again}`;
  }
}
