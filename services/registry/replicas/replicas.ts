import type { Post } from "../../../lib/events/nats-post.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { FollowOptions } from "../calls/follow.ts";
import type { LiveCall } from "../calls/live-call.ts";
import type { DeviceOpener } from "../devices/device-link.ts";
import { askCall, serveCall } from "./call-session.ts";
import { remoteDevice, serveDevice } from "./device-session.ts";
import type { Membership } from "./membership.ts";
import type { BusKeys, RefusedWhy } from "./sealed-message.ts";
import type { Session, SessionMessage } from "./session.ts";
import { createSessions } from "./sessions.ts";

/** This replica among the others, over the bus. */
export interface Replicas {
  /** The way to a device that another replica holds. */
  remote(replicaId: string, deviceId: string): DeviceOpener;
  /** Asks another replica about a call that it leads; see FollowOptions. */
  readonly ask: FollowOptions["ask"];
  /** Tells the others that there is something new in the database. */
  nudge(): void;
  /** Messages refused since the start. */
  readonly refused: number;
  /** Tells the others to look, ends all sessions and listens no more. */
  close(): void;
}

/** What being a replica rests on. */
export interface ReplicasOptions {
  membership: Membership;
  post: Post;
  keys: BusKeys;
  logger: Logger;
  now(): number;
  /** The stream of a device that this replica holds. */
  shared(deviceId: string): DeviceOpener | undefined;
  /** A call whose life this replica leads. */
  led(callId: string): LiveCall | undefined;
  /** There is something new in the database. */
  onNudge(): void;
  onRefused?(why: RefusedWhy): void;
}

/** How long nudges are gathered, in milliseconds: a thousand devices that attach at once are one look. */
const GATHER_MS = 20;

/** Joins the bus. */
export function joinBus(options: ReplicasOptions): Replicas {
  const { membership } = options;
  const heard = gathered(options.onNudge);
  const sessions = createSessions({ ...options, self: membership.self, serve, onNudge: heard });
  const nudge = gathered(sessions.nudge);

  function serve(session: Session, opening: SessionMessage): void {
    if (opening.case === "openDevice") {
      const share = options.shared(opening.value.deviceId);
      if (share === undefined) session.close("this replica does not hold the device's stream");
      else void serveDevice(session, share);
    } else if (opening.case === "openCall") {
      const live = options.led(opening.value.callId);
      if (live === undefined) session.close("this replica does not lead the call");
      else void serveCall(session, live);
    }
  }

  return {
    remote: (replicaId, deviceId) => remoteDevice(sessions, replicaId, deviceId),
    ask: (owner, callId, tell, canceled) =>
      owner === membership.self || !membership.isAlive(owner)
        ? undefined
        : askCall(sessions, owner, callId, tell, canceled),
    nudge,
    get refused() {
      return sessions.refused;
    },
    close() {
      heard.stop();
      nudge.stop();
      // A last one, at once: the others find out what this replica has let go of.
      sessions.nudge();
      sessions.close();
    },
  };
}

/** Does a thing a moment after it was asked for, once for all who asked meanwhile, until it is stopped. */
function gathered(what: () => void): { (): void; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  const ask = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      what();
    }, GATHER_MS);
  };
  return Object.assign(ask, { stop: () => clearTimeout(timer) });
}
