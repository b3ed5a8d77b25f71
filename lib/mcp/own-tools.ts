import type { ListedTool } from "./toolset.ts";

/** The tool that brings a call's end. */
export const CALL_RESULT = "call_result";

/** The tool that cancels a call. */
export const CALL_CANCEL = "call_cancel";

/** The longest that `call_result` waits, in seconds: less than the 60 that clients wait by default. */
export const MAX_WAIT_S = 45;

const callId = {
  type: "string",
  minLength: 1,
  maxLength: 64,
  description: "The call's id, as a result named it. Required.",
};

/** The tools that the face has itself: for calls that went on after their answer. */
export const OWN_TOOLS: readonly ListedTool[] = [
  {
    name: CALL_CANCEL,
    description: "Cancels a call. One that is held never runs; one that runs is ended, with all that it started.",
    inputSchema: {
      type: "object",
      properties: { call_id: callId },
      required: ["call_id"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
  {
    name: CALL_RESULT,
    description:
      "Returns how a call ended, or how it stands. Runs nothing. For a call whose result said that it is held for a person, or still runs.",
    inputSchema: {
      type: "object",
      properties: {
        call_id: callId,
        wait_seconds: {
          type: "integer",
          minimum: 0,
          maximum: MAX_WAIT_S,
          description: `How long to wait for the end, in seconds. Default 0, at most ${MAX_WAIT_S}.`,
        },
      },
      required: ["call_id"],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  },
];
