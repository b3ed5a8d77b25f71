import type { IncomingHttpHeaders } from "node:http";

/** The longest that a timer of node takes. */
export const LONGEST_MS = 2 ** 31 - 1;
const LONGEST_HOURS = Math.floor(LONGEST_MS / 3_600_000);

/** The units of gRPC's deadline in which its eight digits can say more than that. */
const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000 };

/**
 * Shortens a deadline that no timer takes to one that is refused all the same as too long. connect sets its timer before it
 * looks at its limit, and node then writes a warning to standard error and lets the time run out at once.
 */
export function boundTimeouts(headers: IncomingHttpHeaders): void {
  const grpc = headers["grpc-timeout"];
  if (typeof grpc === "string" && grpcMs(grpc) > LONGEST_MS) headers["grpc-timeout"] = `${LONGEST_HOURS}H`;
  const connect = headers["connect-timeout-ms"];
  if (typeof connect === "string" && Number(connect) > LONGEST_MS) headers["connect-timeout-ms"] = String(LONGEST_MS);
}

/** 0 for what is no deadline or a small one; connect looks at those. */
function grpcMs(text: string): number {
  const [, digits, unit = ""] = /^(\d{1,8})([HMS])$/.exec(text) ?? [];
  return Number(digits ?? 0) * (UNIT_MS[unit] ?? 0);
}
