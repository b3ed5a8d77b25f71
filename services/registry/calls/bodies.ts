import { create, fromJson, type JsonObject, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { CallSchema, type CallSpec, type CallStatus } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorDetailSchema } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { GovernedCall } from "./governed-call.ts";

/** What a caller asked with. */
export interface Asked {
  /** Canonical JSON. */
  args: Uint8Array;
  purpose: string;
}

/** What came of a call. */
export type Result = Pick<CallStatus, "output" | "error" | "errorMessage">;

/**
 * What of a call lies sealed in the database, since callers and tools wrote it: its arguments and purpose, its output and
 * error text. The rest, the skeleton, stays in clear and for ever.
 */
export interface Bodies {
  /** The arguments as they are run. */
  sealAsked(callId: string, asked: Asked): Uint8Array;
  openAsked(callId: string, sealed: Uint8Array): Asked;
  /** The arguments as they may be shown: without secrets. Kept beside the others where there are secrets, and after the end. */
  sealShown(callId: string, shown: Asked): Uint8Array;
  openShown(callId: string, sealed: Uint8Array): Asked;
  /** Null where there is nothing to keep. */
  sealResult(callId: string, result: Result): Uint8Array | null;
  openResult(callId: string, sealed: Uint8Array): Partial<Result>;
}

/** Bodies under a key that all replicas have. Opening throws SealError. */
export function createBodies(sealer: Sealer): Bodies {
  return {
    sealAsked: (id, asked) => sealer.seal(`call/${id}/asked`, encodeAsked(asked)),
    openAsked: (id, sealed) => decodeAsked(sealer.open(`call/${id}/asked`, sealed)),
    sealShown: (id, shown) => sealer.seal(`call/${id}/shown`, encodeAsked(shown)),
    openShown: (id, sealed) => decodeAsked(sealer.open(`call/${id}/shown`, sealed)),
    sealResult(id, { output, error, errorMessage }) {
      if (output === undefined && error === undefined && errorMessage === "") return null;
      const json = { output, error: error && toJson(ErrorDetailSchema, error), message: errorMessage || undefined };
      return sealer.seal(`call/${id}/result`, Buffer.from(JSON.stringify(json)));
    },
    openResult(id, sealed) {
      const { output, error, message } = JSON.parse(textOf(sealer.open(`call/${id}/result`, sealed))) as {
        output?: JsonObject;
        error?: JsonValue;
        message?: string;
      };
      return {
        ...(output !== undefined && { output }),
        ...(error !== undefined && { error: fromJson(ErrorDetailSchema, error, { ignoreUnknownFields: true }) }),
        ...(message !== undefined && { errorMessage: message }),
      };
    },
  };
}

/** The fields of a call that are sealed, and the error, of which the reason stays in clear. */
interface SealedFields {
  spec: { purpose: string; arguments: CallSpec["arguments"] | undefined };
  status: {
    output: CallStatus["output"] | undefined;
    error: CallStatus["error"] | undefined;
    errorMessage: string;
  };
}

/**
 * The encoded call without what is sealed: of an error the reason stays. The fields are emptied while the call is encoded
 * rather than left out of a copy, which would cost as much again as encoding it.
 */
export function skeletonOf(call: GovernedCall): Uint8Array {
  const { spec, status } = call as SealedFields;
  const { purpose, arguments: shown } = spec;
  const { output, error, errorMessage } = status;
  spec.purpose = "";
  spec.arguments = undefined;
  status.output = undefined;
  status.error = error && create(ErrorDetailSchema, { reason: error.reason });
  status.errorMessage = "";
  try {
    return toBinary(CallSchema, call);
  } finally {
    spec.purpose = purpose;
    spec.arguments = shown;
    status.output = output;
    status.error = error;
    status.errorMessage = errorMessage;
  }
}

const LENGTH_BYTES = 4;

/** The purpose's length, the purpose, the arguments. */
function encodeAsked({ args, purpose }: Asked): Uint8Array {
  const text = Buffer.from(purpose);
  const head = Buffer.alloc(LENGTH_BYTES);
  head.writeUInt32BE(text.length);
  return Buffer.concat([head, text, args]);
}

function decodeAsked(bytes: Uint8Array): Asked {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const argsAt = LENGTH_BYTES + whole.readUInt32BE();
  return { purpose: whole.toString("utf8", LENGTH_BYTES, argsAt), args: whole.subarray(argsAt) };
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
}
