import { create } from "@bufbuild/protobuf";
import { isInputRequiredResult } from "@modelcontextprotocol/server";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { CallApprovalSchema, CallSpecSchema, CallState, CallStatusSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import type { McpCall, McpGate } from "./gate.ts";
import { handleCall } from "./handle-call.ts";
import type { ToolRequest } from "./server.ts";
import { mcpToolset } from "./toolset.ts";

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const device = { id: "dev-1", name: "laptop" };
const toolset = mcpToolset(
  [device],
  [{ device, tool: create(ToolSchema, { name: "exec", capabilities: ["shell.exec"] }) }],
);

let call: McpCall;
let begun: number;
/** Whether it is an earlier request's. */
let joined: boolean;
let canceled: string[];
/** How long each wait was for, of a held call. */
let waits: number[];
/** What happens to the call while it is waited for. */
let meanwhile: () => void;

beforeEach(() => {
  const approval = create(CallApprovalSchema, { id: "apr-1" });
  call = {
    id: "call-1",
    spec: create(CallSpecSchema, { tool: "exec", deviceName: "laptop" }),
    status: create(CallStatusSchema, { state: CallState.HELD, approval }),
  };
  begun = 0;
  joined = false;
  canceled = [];
  waits = [];
  meanwhile = () => undefined;
});

const one = () => ({
  call,
  joined,
  async wait({ heldMs }: { heldMs: number }) {
    waits.push(heldMs);
    if (heldMs > 0) meanwhile();
    return call;
  },
});
const gate: McpGate = {
  toolset: async () => toolset,
  async begin() {
    begun++;
    return one();
  },
  find: async () => one(),
  list: async () => expect.fail("nothing is listed"),
  read: async () => expect.fail("nothing is read"),
  async cancel(callId) {
    canceled.push(callId);
    call.status.state = CallState.CANCELED;
    return call;
  },
};

const signal = new AbortController().signal;
const requestOf = (more: Partial<ToolRequest> = {}): ToolRequest => ({
  gate,
  waitMs: 45_000,
  signal,
  canceled: { signal, release: () => undefined },
  envelope: undefined,
  approvalUrl: (id) => `https://reeve.example/approvals/${id}`,
  state: undefined,
  responses: undefined,
  notify: undefined,
  onError: (error) => expect.fail(String(error)),
  ...more,
});
const use = (more: Partial<ToolRequest> = {}) => handleCall({ name: "exec", arguments: {} }, requestOf(more));
const approve = () => {
  call.status.state = CallState.SUCCEEDED;
  call.status.output = { exit_code: 0 };
};

describe("a held call", () => {
  test("is waited for, and its result says what holds it and how its end is had", async () => {
    const answer = await use();
    expect(waits).toEqual([45_000]);
    const text = JSON.stringify(answer);
    for (const word of ["apr-1", "call-1", "call_result", "https://reeve.example/approvals/apr-1", "reeve approval"])
      expect(text).toContain(word);
    expect(answer).toMatchObject({ isError: true });
  });

  test("is its end where a person decides meanwhile", async () => {
    meanwhile = approve;
    expect(await use()).toMatchObject({ structuredContent: { exit_code: 0 } });
  });

  test("is a task where the client takes one, at once", async () => {
    const envelope = {
      [CAPABILITIES]: { extensions: { "io.modelcontextprotocol/tasks": {} }, elicitation: { url: {} } },
    };
    expect(await use({ envelope })).toMatchObject({ resultType: "task", taskId: "call-1", status: "working" });
    expect(waits).toEqual([0]);
  });

  test("is canceled with its request", async () => {
    const gone = AbortSignal.abort();
    const release = vi.fn();
    await use({ canceled: { signal: gone, release } });
    expect([canceled, release.mock.calls.length]).toEqual([["call-1"], 1]);
  });

  test("is left alone with a request that was given an earlier one's, in any round", async () => {
    joined = true;
    const gone = { signal: AbortSignal.abort(), release: () => undefined };
    await use({ canceled: gone });
    const envelope = { [CAPABILITIES]: { elicitation: { url: {} } } };
    const shown = await use({ envelope });
    joined = false;
    await use({ envelope, state: stateIn(shown), responses: { approve: { action: "accept" } }, canceled: gone });
    expect(canceled).toEqual([]);
  });

  test("goes on where the connection is gone and that cancels nothing", async () => {
    await use({ signal: AbortSignal.abort() });
    expect(canceled).toEqual([]);
  });
});

describe("a client that can show a page", () => {
  const envelope = { [CAPABILITIES]: { elicitation: { url: {} } } };
  const opened = { approve: { action: "accept" } };

  test("shows the approval's, once, and comes back for the end of the same call", async () => {
    const first = await use({ envelope });
    expect(isInputRequiredResult(first)).toBe(true);
    expect(JSON.stringify(first)).toContain("https://reeve.example/approvals/apr-1");
    const second = await use({ envelope, state: stateIn(first), responses: opened });
    expect(isInputRequiredResult(second)).toBe(true);
    expect(JSON.stringify(second)).not.toContain("inputRequests");
    meanwhile = approve;
    const third = await use({ envelope, state: stateIn(second) });
    expect(third).toMatchObject({ structuredContent: { exit_code: 0 } });
    expect(begun).toBe(1);
  });

  test("gets the text where its user does not open it, or no person decides in eight rounds", async () => {
    const first = await use({ envelope });
    const declined = await use({ envelope, state: stateIn(first), responses: { approve: { action: "decline" } } });
    expect(JSON.stringify(declined)).toContain("call_result");
    let answer = await use({ envelope, state: stateIn(first), responses: opened });
    let rounds = 2;
    for (; isInputRequiredResult(answer); rounds++) answer = await use({ envelope, state: stateIn(answer) });
    expect([rounds, begun]).toEqual([9, 1]);
    expect(JSON.stringify(answer)).toContain("call_result");
  });

  test("has no page where there is none", async () => {
    expect(isInputRequiredResult(await use({ envelope, approvalUrl: undefined }))).toBe(false);
  });

  test.each(["0.call-1", "1.", "10.call-1", "1.call 1", `1.${"a".repeat(65)}`])(
    "is refused a state that was not made here: %s",
    async (state) => {
      await expect(use({ state })).rejects.toThrow("requestState");
      expect(begun).toBe(0);
    },
  );
});

test("without a device that is online, a call says so", async () => {
  const none = { ...gate, toolset: async () => mcpToolset([], []) };
  expect(JSON.stringify(await use({ gate: none }))).toContain("no device is online");
});

function stateIn(answer: object): string {
  return String((answer as { requestState?: unknown }).requestState);
}
