import { type Generated, sql } from "kysely";
import type { Migration } from "../../../lib/store/database.ts";

/** The tables of enrollments, certificates and the authorities that sign them. */
export interface EnrollmentTables {
  enrollments: {
    /** Row number: the order in which tokens were made. */
    row: Generated<number>;
    id: string;
    name: string;
    /** JSON of an object of texts, its keys sorted. */
    labels: string;
    /** An EnrollmentState; 0 while its making is being recorded. EXPIRED is never written: the time says it. */
    state: number;
    /** SHA-256 of the token's secret. */
    secret_hash: Uint8Array;
    auto_confirm: number;
    /** 1 where it may take the place of another device of the name. */
    replaces: number;
    created_by: string;
    create_ms: number;
    expire_ms: number;
    /** The first device that showed the token; empty until then. */
    device_id: Generated<string>;
    /** Of that device's TLS key, as hex pairs with colons; empty until then. */
    fingerprint: Generated<string>;
    /** The first certificate, PEM; empty until it was fetched. */
    certificate: Generated<string>;
    certificate_expire_ms: number | null;
    /** The highest number of a renewal. */
    renew_count: Generated<number>;
    /** Why it was locked or removed. */
    why: Generated<string>;
    /** 1 where it was locked because its state was found in two places. */
    cloned: Generated<number>;
    /** When it was locked; of no meaning in any other state. */
    lock_ms: number | null;
    /** Who locked it: a principal's id, or the device's own where its state was found in two places. */
    locked_by: Generated<string>;
    /** How many refusals of this token are in the audit log. */
    refusals: Generated<number>;
  };
  /** Changes whose record policy has not acknowledged yet. */
  enrollment_changes: {
    row: Generated<number>;
    id: string;
    /** The reeve.audit.v1.DeviceIdentity to be recorded. */
    record: Uint8Array;
    /** JSON of what happens once it is recorded; empty where it has happened. */
    effect: string;
  };
  /** Certificates that have not expired, so that one from before a new enrollment is known for what it is. */
  device_certificates: {
    /** SHA-256 of the DER bytes, in hex. */
    fingerprint: string;
    enrollment_id: string;
    expire_ms: number;
  };
  device_authorities: {
    /** SHA-256 of the public key, in hex. */
    id: string;
    /** PEM. */
    certificate: string;
    /** The private key's PEM, sealed. */
    sealed_key: Uint8Array;
    /** 1 for the one that signs. */
    signs: number;
    create_ms: number;
    /** From when on it is trusted no more. */
    trust_end_ms: number | null;
  };
}

/** Makes the tables. */
export const enrollmentMigration: Migration = {
  name: "0200_enrollments",
  up: async (db) => {
    await db.schema
      .createTable("enrollments")
      .addColumn("row", "bigserial", (column) => column.primaryKey())
      .addColumn("id", "text", (column) => column.notNull().unique())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("labels", "text", (column) => column.notNull())
      .addColumn("state", "integer", (column) => column.notNull())
      .addColumn("secret_hash", "bytea", (column) => column.notNull())
      .addColumn("auto_confirm", "integer", (column) => column.notNull())
      .addColumn("replaces", "integer", (column) => column.notNull())
      .addColumn("created_by", "text", (column) => column.notNull())
      .addColumn("create_ms", "bigint", (column) => column.notNull())
      .addColumn("expire_ms", "bigint", (column) => column.notNull())
      .addColumn("device_id", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("fingerprint", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("certificate", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("certificate_expire_ms", "bigint")
      .addColumn("renew_count", "bigint", (column) => column.notNull().defaultTo(0))
      .addColumn("why", "text", (column) => column.notNull().defaultTo(""))
      .addColumn("cloned", "integer", (column) => column.notNull().defaultTo(0))
      .addColumn("refusals", "integer", (column) => column.notNull().defaultTo(0))
      .addColumn("lock_ms", "bigint")
      .addColumn("locked_by", "text", (column) => column.notNull().defaultTo(""))
      .execute();
    await db.schema.createIndex("enrollments_name").on("enrollments").column("name").execute();
    await db.schema.createIndex("enrollments_expire").on("enrollments").column("certificate_expire_ms").execute();
    await db.schema.createIndex("enrollments_device").on("enrollments").column("device_id").execute();
    await db.schema
      .createTable("enrollment_changes")
      .addColumn("row", "bigserial", (column) => column.primaryKey())
      .addColumn("id", "text", (column) => column.notNull().unique())
      .addColumn("record", "bytea", (column) => column.notNull())
      .addColumn("effect", "text", (column) => column.notNull())
      .execute();
    await db.schema
      .createTable("device_certificates")
      .addColumn("fingerprint", "text", (column) => column.primaryKey())
      .addColumn("enrollment_id", "text", (column) => column.notNull())
      .addColumn("expire_ms", "bigint", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("device_certificates_expire").on("device_certificates").column("expire_ms").execute();
    await db.schema
      .createTable("device_authorities")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("certificate", "text", (column) => column.notNull())
      .addColumn("sealed_key", "bytea", (column) => column.notNull())
      .addColumn("signs", "integer", (column) => column.notNull())
      .addColumn("create_ms", "bigint", (column) => column.notNull())
      .addColumn("trust_end_ms", "bigint")
      .execute();
    // One authority signs, however many replicas start at once.
    await sql`create unique index device_authorities_signs on device_authorities (signs) where signs = 1`.execute(db);
  },
};
