import { EnrolmentState as State } from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";
import type { EnrolledFleet } from "./parts.ts";

/** What watching needs. */
export interface ExpiryOptions {
  db: Database<RegistryTables>;
  fleet: Pick<EnrolledFleet, "recheck">;
  logger: Logger;
  now(): number;
}

/** How often to look, in milliseconds. */
const EVERY_MS = 2000;

/** How far back the first look goes, in milliseconds: what expired while no replica ran has no stream. */
const BACK_MS = 60_000;

/** Ends the streams of devices whose newest certificate has expired: a stream could last for ever otherwise. */
export function watchExpiry({ db, fleet, logger, now }: ExpiryOptions): { close(): void } {
  let seenUntil = now() - BACK_MS;
  const look = async (): Promise<void> => {
    const until = now();
    const rows = await db
      .selectFrom("enrolments")
      .select("device_id")
      .where("certificate_expire_ms", ">", seenUntil)
      .where("certificate_expire_ms", "<=", until)
      .where("state", "=", State.ENROLLED)
      .execute();
    for (const { device_id } of rows) {
      logger.warn({ device: device_id }, "the device's certificate has expired: its stream ends");
      await fleet.recheck(device_id);
    }
    seenUntil = until;
  };
  let isLooking = false;
  const lookOnce = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      await look();
    } catch (err: unknown) {
      logger.warn({ err }, "expired certificates could not be looked for");
    }
    isLooking = false;
  };
  const timer = setInterval(() => void lookOnce(), EVERY_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
