import {
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequiredResult,
  inputRequired,
} from "@modelcontextprotocol/server";
import type { McpCall } from "./gate.ts";
import type { Envelope } from "./server.ts";

/** How often a client comes back for one held call. The SDK's client ends after 10 rounds. */
const MAX_ROUNDS = 8;

/** The name of the request to open the page. */
const OPEN = "approve";

/**
 * A round of a held call with a client that was shown the approval's page. What a client sends back is read as what it is, a
 * call's id: it brings nothing that `call_result` with this id does not.
 */
export interface Round {
  callId: string;
  /** From 1. */
  round: number;
  /** Whether the call is an earlier request's. */
  joined: boolean;
}

/** Whether a client can show its user a page. */
export function opensPages(envelope: Envelope): boolean {
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined;
  return capabilities?.elicitation?.url !== undefined;
}

/** Has the client show its user the page, and come back. */
export function showPage(call: McpCall, url: string, joined: boolean): InputRequiredResult {
  const message = `A person has to decide about ${call.spec.tool} on ${call.spec.deviceName}.`;
  return inputRequired({
    inputRequests: { [OPEN]: inputRequired.elicitUrl({ message, url }) },
    requestState: stateOf({ callId: call.id, round: 1, joined }),
  });
}

/** Has the client come back without another look at the page; undefined where it has come often enough. */
export function comeBack(last: Round): InputRequiredResult | undefined {
  const { round } = last;
  return round < MAX_ROUNDS ? inputRequired({ requestState: stateOf({ ...last, round: round + 1 }) }) : undefined;
}

/** The round that a request is of; undefined where its state was not made here. */
export function roundOf(state: string | undefined): Round | undefined {
  const [, round, joined, callId] = /^([1-9])(j?)\.([A-Za-z0-9_-]{1,64})$/.exec(state ?? "") ?? [];
  return round === undefined || callId === undefined
    ? undefined
    : { callId, round: Number(round), joined: joined === "j" };
}

/** Whether the user has opened the page. It is no decision. */
export function hasOpened(responses: Readonly<Record<string, unknown>> | undefined): boolean {
  const response = responses?.[OPEN] as { action?: unknown } | null | undefined;
  return response?.action === "accept";
}

function stateOf({ callId, round, joined }: Round): string {
  return `${round}${joined ? "j" : ""}.${callId}`;
}
