import { type OutboxTables, outboxMigration } from "../../lib/events/outbox.ts";
import type { Migration } from "../../lib/store/database.ts";
import { type LeaseTables, leaseMigration } from "../../lib/store/lease.ts";
import { type CallTables, callMigration } from "./tables/calls.ts";
import { type DeviceTables, deviceMigration } from "./tables/devices.ts";
import { type EnrollmentTables, enrollmentMigration } from "./tables/enrollments.ts";
import { type FanOutTables, fanOutMigration } from "./tables/fan-outs.ts";
import { type QueueTables, queueMigration } from "./tables/queued-calls.ts";
import { type ScheduleTables, scheduleMigration } from "./tables/schedules.ts";

/** The registry's tables. */
export interface RegistryTables
  extends CallTables,
    DeviceTables,
    OutboxTables<"registry_outbox">,
    LeaseTables<"registry_leases">,
    EnrollmentTables,
    FanOutTables,
    QueueTables,
    ScheduleTables {}

/** Every change of the registry's tables, in order. */
export const registryMigrations: readonly Migration[] = [
  callMigration,
  deviceMigration,
  outboxMigration("registry_outbox"),
  leaseMigration("registry_leases"),
  enrollmentMigration,
  fanOutMigration,
  queueMigration,
  scheduleMigration,
];
