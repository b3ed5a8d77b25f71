import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type DeviceCommand,
  DeviceCommandSchema,
  type OutputRead,
  type ReadOutputCommand,
  ReadOutputCommandSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** What to read of a call's output. */
export type ReadOutput = Pick<ReadOutputCommand, "callId" | "fromSequence" | "maxBytes" | "contextBytes">;

/** Asks one device for what its calls have printed. */
export interface OutputReads {
  /** Rejects with DEVICE_OFFLINE where no answer comes, and with INTERNAL where the device could not read it. */
  read(what: ReadOutput): Promise<OutputRead>;
  answered(read: OutputRead): void;
  /** The device is linked again: what it has not answered is asked once more. */
  sendAgain(): void;
  /** Nothing waits any more. */
  close(): void;
  readonly size: number;
}

/** How long an answer is waited for, in milliseconds: a device that went offline may be back by then. */
const ANSWER_MS = 10_000;

interface Asked {
  command: DeviceCommand;
  answer: PromiseWithResolvers<OutputRead>;
}

/** @param send sends a command; it is lost while the device is not linked. */
export function createOutputReads(send: (command: DeviceCommand) => void): OutputReads {
  const asked = new Map<bigint, Asked>();
  let lastId = 0n;
  return {
    async read({ callId, fromSequence, maxBytes, contextBytes }) {
      const readId = ++lastId;
      const value = create(ReadOutputCommandSchema, { callId, readId, fromSequence, maxBytes, contextBytes });
      const one: Asked = {
        command: create(DeviceCommandSchema, { command: { case: "readOutput", value } }),
        answer: Promise.withResolvers(),
      };
      asked.set(readId, one);
      const timer = setTimeout(() => one.answer.reject(offline()), ANSWER_MS);
      try {
        send(one.command);
        return await one.answer.promise;
      } finally {
        clearTimeout(timer);
        asked.delete(readId);
      }
    },
    answered(read) {
      const one = asked.get(read.readId);
      if (read.summary === undefined) one?.answer.reject(unreadable(read.callId));
      else one?.answer.resolve(read);
    },
    sendAgain() {
      for (const { command } of asked.values()) send(command);
    },
    close() {
      for (const { answer } of asked.values()) answer.reject(offline());
    },
    get size() {
      return asked.size;
    },
  };
}

function offline(): Error {
  return fault(ErrorReason.DEVICE_OFFLINE, {}, { message: "the device does not answer: it may be offline" });
}

function unreadable(callId: string): Error {
  const message = "the device could not read the output; its log has the cause";
  return fault(ErrorReason.INTERNAL, { request_id: callId }, { message });
}
