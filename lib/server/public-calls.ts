import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import type { CallerConnection } from "./connections.ts";
import type { Limits } from "./limits.ts";

/** Bounds the concurrent public RPCs of unauthenticated callers. */
export interface PublicCalls {
  /** Throws RATE_LIMITED where there are too many. The result ends the call, and must be called once. */
  enter(connection: CallerConnection): () => void;
}

/** How long a caller that was refused should wait, in milliseconds. */
const RETRY_AFTER_MS = 1_000;

/** Counts public RPCs of a server: on a connection, of an address, and in all. Connections that are known are not counted. */
export function createPublicCalls(limits: Limits): PublicCalls {
  const { publicCallsPerConnection, publicCallsPerAddress, maxPublicCalls } = limits;
  let open = 0;
  return {
    enter(connection) {
      if (connection.isKnown) return () => undefined;
      const { neighborhood } = connection;
      if (connection.publicCalls >= publicCallsPerConnection)
        throw tooMany(publicCallsPerConnection, "on this connection");
      if (neighborhood.publicCalls >= publicCallsPerAddress) throw tooMany(publicCallsPerAddress, "from this address");
      if (open >= maxPublicCalls) throw tooMany(maxPublicCalls, "in all");
      open++;
      connection.publicCalls++;
      neighborhood.publicCalls++;
      return () => {
        open--;
        connection.publicCalls--;
        neighborhood.publicCalls--;
      };
    },
  };
}

function tooMany(limit: number, where: string): Error {
  const metadata = { limit: String(limit), retry_after_ms: String(RETRY_AFTER_MS) };
  const message = `without authentication at most ${limit} calls may be under way ${where}; try again later, or authenticate`;
  return fault(ErrorReason.RATE_LIMITED, metadata, { message });
}
