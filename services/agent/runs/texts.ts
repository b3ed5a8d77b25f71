import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import {
  type RunEvent,
  RunEventSchema,
  type RunSpec,
  RunSpecSchema,
  type RunStatus,
  RunStatusSchema,
} from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorDetailSchema } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { AgentTables } from "./tables.ts";

/**
 * What of a run lies sealed in the database, since people, models and tools wrote it: prompts, inputs, answers, outputs.
 * Opening throws SealError.
 */
export interface Texts {
  sealSpec(runId: string, spec: RunSpec): Uint8Array;
  openSpec(runId: string, sealed: Uint8Array): RunSpec;
  sealInput(runId: string, input: JsonObject): Uint8Array;
  openInput(runId: string, sealed: Uint8Array): JsonObject;
  sealStatus(runId: string, status: RunStatus): Uint8Array;
  openStatus(runId: string, sealed: Uint8Array): RunStatus;
  /** @param key the event's, so that one cannot be passed off as another. */
  sealEvent(runId: string, key: string, event: RunEvent): Uint8Array;
  openEvent(runId: string, key: string, sealed: Uint8Array): RunEvent;
  sealWait(runId: string, name: string, text: string): Uint8Array;
  openWait(runId: string, name: string, sealed: Uint8Array): string;
}

/** Texts under a key that all replicas have. */
export function createTexts(sealer: Sealer): Texts {
  return {
    sealSpec: (id, spec) => sealer.seal(`run/${id}/spec`, toBinary(RunSpecSchema, spec)),
    openSpec: (id, sealed) => fromBinary(RunSpecSchema, sealer.open(`run/${id}/spec`, sealed)),
    sealInput: (id, input) => sealer.seal(`run/${id}/input`, Buffer.from(JSON.stringify(input))),
    openInput: (id, sealed) => JSON.parse(textOf(sealer.open(`run/${id}/input`, sealed))) as JsonObject,
    sealStatus: (id, status) => sealer.seal(`run/${id}/status`, toBinary(RunStatusSchema, status)),
    openStatus: (id, sealed) => fromBinary(RunStatusSchema, sealer.open(`run/${id}/status`, sealed)),
    sealEvent: (id, key, event) => sealer.seal(`run/${id}/event/${key}`, toBinary(RunEventSchema, event)),
    openEvent: (id, key, sealed) => fromBinary(RunEventSchema, sealer.open(`run/${id}/event/${key}`, sealed)),
    sealWait: (id, name, text) => sealer.seal(`run/${id}/wait/${name}`, Buffer.from(text)),
    openWait: (id, name, sealed) => textOf(sealer.open(`run/${id}/wait/${name}`, sealed)),
  };
}

/** A spec without what a person or a model wrote. */
export function specWithoutTexts(spec: RunSpec): RunSpec {
  return create(RunSpecSchema, { ...spec, prompt: "", system: "", purpose: "" });
}

/** A status without what a model or a tool wrote: of an error the reason stays. */
export function statusWithoutTexts(status: RunStatus): RunStatus {
  const { error, ...rest } = status;
  const bare = error === undefined ? {} : { error: create(ErrorDetailSchema, { reason: error.reason }) };
  return create(RunStatusSchema, { ...rest, ...bare, text: "", message: "", textsRemoved: true });
}

const CHECK = "sealing-check";

/**
 * Makes sure that the key is the one that the database was sealed with, before anything is sealed with another one. Throws
 * SealError.
 */
export async function checkSealingKey(db: Database<AgentTables>, sealer: Sealer): Promise<void> {
  await db
    .insertInto("agent_sealing")
    .values({ name: CHECK, value: sealer.seal(CHECK, Buffer.from(CHECK)) })
    .onConflict((conflict) => conflict.column("name").doNothing())
    .execute();
  const row = await db.selectFrom("agent_sealing").select("value").where("name", "=", CHECK).executeTakeFirstOrThrow();
  sealer.open(CHECK, row.value);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
