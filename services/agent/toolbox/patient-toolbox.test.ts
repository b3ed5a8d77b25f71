import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { createPatientToolbox } from "./patient-toolbox.ts";
import type { CallView, ToolCall } from "./toolbox.ts";

const call: ToolCall = { id: "toolu_1", callId: "run-1-a", name: "exec", input: {} };
const ended: CallView = { kind: "ended", result: { content: "done", isError: false } };
const unreachable = () => new ConnectError("no connection", Code.Unavailable);

let closing = new AbortController();
afterEach(() => {
  closing.abort();
  closing = new AbortController();
});

/** A toolbox whose every part takes the next of these outcomes. */
function start(...outcomes: readonly (CallView | Error | (() => never))[]) {
  const left = [...outcomes];
  const did: string[] = [];
  const watched: string[] = [];
  const canceled = new AbortController();
  const part = (name: string) => async (): Promise<CallView> => {
    did.push(name);
    const next = left.shift();
    if (typeof next === "function") return next();
    if (next === undefined || next instanceof Error) throw next ?? unreachable();
    return next;
  };
  const toolbox = createPatientToolbox({
    toolbox: { submit: part("submit"), look: part("look"), cancel: part("cancel") },
    watch: (callId) => watched.push(callId),
    canceled: canceled.signal,
    closing: closing.signal,
  });
  return { toolbox, did, watched, canceled };
}

describe("a run's call", () => {
  it("is handed over again until the registry can be reached, and watched once it waits", async () => {
    const { toolbox, did, watched } = start(unreachable(), { kind: "waiting", seconds: 9 });
    expect(await toolbox.submit(call)).toEqual({ kind: "waiting", seconds: 9 });
    expect(did).toEqual(["submit", "submit"]);
    expect(watched).toEqual(["run-1-a"]);
  });

  it("that has ended is not watched", async () => {
    const { toolbox, watched } = start(ended);
    expect(await toolbox.submit(call)).toBe(ended);
    expect(watched).toEqual([]);
  });

  it("gets an error that stays as its result", async () => {
    const refused = fault(ErrorReason.ROLE_REQUIRED, { roles: "agent" }, { message: "not for you" });
    for (const [error, text] of [
      [refused, "error: role_required: not for you"],
      [new Error("there is no agent x any more"), "error: internal: "],
    ] as const) {
      const view = await start(error).toolbox.submit(call);
      expect(view).toMatchObject({ kind: "ended", result: { isError: true, content: expect.stringContaining(text) } });
    }
  });

  it("is not handed over any more once its run is canceled, but canceled until the registry knows it", async () => {
    const scene = start(
      () => {
        scene.canceled.abort();
        throw unreachable();
      },
      unreachable(),
      { kind: "waiting", seconds: 30 },
      unreachable(),
      ended,
    );
    const { toolbox, did } = scene;
    expect(await toolbox.submit(call)).toEqual({ kind: "waiting" });
    expect(await toolbox.cancel(call)).toEqual({ kind: "waiting", seconds: 30 });
    expect(await toolbox.look(call, { timeOver: false, canceled: true })).toBe(ended);
    expect(did).toEqual(["submit", "cancel", "cancel", "look", "look"]);
  });

  it("comes to nothing once the process ends", async () => {
    const { toolbox, did } = start();
    const view = toolbox.look(call, { timeOver: false, canceled: false });
    closing.abort();
    const nothing = Symbol("nothing");
    const later = new Promise((resolve) => setTimeout(resolve, 300, nothing));
    expect(await Promise.race([view, later])).toBe(nothing);
    expect(did).toEqual(["look"]);
  });
});
