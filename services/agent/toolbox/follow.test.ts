import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { describe, expect, it } from "vitest";
import { registryClient } from "../../../client/registry.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { callIdOf } from "../run-input/call-id.ts";
import { createRegistryCaller } from "./registry-caller.ts";
import { inMemoryRegistry, type Stream } from "./testdata/in-memory-registry.ts";
import { held, start, succeed, toolset } from "./testdata/start-toolbox.ts";
import type { CallReport } from "./toolbox.ts";

describe("a held call", () => {
  it("is reported with its approval, and goes on when it is approved", async () => {
    let approve = () => {};
    const { call, reports } = start({
      onCall(stream) {
        stream.emit(CallState.HELD, { approval: { id: "apr-7" } });
        approve = () => {
          stream.emit(CallState.PERMITTED, { approval: { id: "apr-7" } });
          succeed(stream);
        };
      },
    });
    const result = await call(undefined, "exec", (report) => report.kind === "held" && approve());
    expect(reports).toContainEqual({ kind: "held", callId: result.callId, approvalId: "apr-7" });
    expect(result.isError).toBe(false);
  });

  it("is left when the wait ends, and the model reads what to do", async () => {
    let cancels = 0;
    const { call } = start(
      {
        onCall: (stream) => stream.emit(CallState.HELD, { approval: { id: "apr-7" } }),
        onCancel: () => cancels++,
        getCall: held,
      },
      { approvalWaitMs: 1 },
    );
    const result = await call();
    expect(result).toMatchObject({ isError: true, state: "held", approvalId: "apr-7" });
    expect(result.content).toMatch(/^error: approval_required: a person must approve this call/);
    expect(result.content).toContain(`call_id: ${result.callId}\napproval_id: apr-7\n`);
    expect(result.content).toContain("do not send it again");
    expect(cancels).toBe(0);
  });
});

describe("a held call whose approval the stream does not report", () => {
  it("is waited for, because the registry says that it runs", async () => {
    let stream: Stream | undefined;
    const { call } = start(
      {
        onCall(opened) {
          stream = opened;
          opened.emit(CallState.HELD, { approval: { id: "apr-7" } });
        },
        getCall({ callId }) {
          setImmediate(() => stream && succeed(stream));
          return { call: { id: callId, status: { state: CallState.DISPATCHED, approval: { id: "apr-7" } } } };
        },
      },
      { approvalWaitMs: 1 },
    );
    expect(await call()).toMatchObject({ isError: false, state: "succeeded" });
  });

  it("is never said not to have run where the registry cannot be asked", async () => {
    const { call } = start({ onCall: (stream) => stream.emit(CallState.HELD) }, { approvalWaitMs: 1 });
    expect((await call()).content).toMatch(/^error: interrupted: /);
  });
});

describe("canceling", () => {
  it("cancels the call where it runs and waits for its end", async () => {
    const { call, abort } = start({
      onCall: (stream) => stream.emit(CallState.DISPATCHED),
      onCancel: (stream) =>
        stream.emit(CallState.CANCELED, {
          error: { reason: ErrorReason.CANCELED },
          errorMessage: "canceled by the caller",
        }),
    });
    const result = await call(undefined, "exec", (report) => {
      if (report.kind === "state" && report.state === "dispatched") abort.abort();
    });
    expect(result).toMatchObject({ state: "canceled", content: expect.stringMatching(/^error: canceled: /) });
  });

  it("sends nothing where the run was canceled before", async () => {
    const { call, abort, calls } = start({ onCall: (stream) => succeed(stream) });
    abort.abort();
    expect(await call()).toMatchObject({ isError: true, content: "error: canceled: it was not sent" });
    expect(calls).toEqual([]);
  });

  it("cancels by CancelCall where the stream is broken, and does not send the call again", async () => {
    const { call, abort, calls } = start({
      onCall: (stream) => stream.emit(CallState.DISPATCHED),
      onCancel: (stream) => stream.fail(new ConnectError("gone", Code.Unavailable)),
      cancelCall: ({ callId }) => ({ call: { id: callId, status: { state: CallState.CANCELED } } }),
    });
    const result = await call(undefined, "exec", (report) => report.kind === "state" && abort.abort());
    expect(result).toMatchObject({ isError: true, state: "canceled" });
    expect(calls).toHaveLength(1);
  });

  it("says that the end is not known where the device does not report it in time", async () => {
    const { call, abort } = start({ onCall: (stream) => stream.emit(CallState.DISPATCHED) }, { cancelGraceMs: 1 });
    const result = await call(undefined, "exec", (report) => report.kind === "state" && abort.abort());
    expect(result.content).toMatch(
      /^error: interrupted: it was asked to stop, and its end has not been reported\ncall_id: /,
    );
  });
});

describe("a broken stream", () => {
  it("is opened again, and the same call is sent again under the same id", async () => {
    const { call, calls, reports } = start({
      onCall(stream) {
        stream.emit(CallState.DISPATCHED);
        if (stream.index < 3) stream.end();
        else succeed(stream);
      },
    });
    expect(await call()).toMatchObject({ isError: false });
    expect(calls).toHaveLength(4);
    expect(new Set(calls.map(({ callId }) => callId)).size).toBe(1);
    expect(reports.filter((report) => report.kind === "state" && report.state === "dispatched")).toHaveLength(1);
  });

  it("gives up after its last try, and says that the end is not known", async () => {
    const { call, calls } = start({ onCall: (stream) => stream.fail(new ConnectError("reset", Code.Unavailable)) });
    const { content } = await call();
    expect(content).toMatch(/^error: interrupted: the link to the registry broke and did not come back\ncall_id: /);
    expect(content).toContain("Look before doing it again.");
    expect(calls).toHaveLength(3);
  });

  it("is final where the registry says why", async () => {
    const { call, calls } = start({
      onCall: (stream) => stream.fail(fault(ErrorReason.ROLE_REQUIRED, { roles: "agent" }, { message: "not for you" })),
    });
    expect((await call()).content).toBe("error: role_required: not for you\nroles: agent");
    expect(calls).toHaveLength(1);
  });
});

describe("over HTTP/2", () => {
  it("calls, leaves and cancels as it does in memory", async () => {
    const { routes, calls } = inMemoryRegistry({
      onCall(stream, { params }) {
        if (params?.do === "run") succeed(stream);
        else stream.emit(params?.do === "hold" ? CallState.HELD : CallState.DISPATCHED, { approval: { id: "apr-7" } });
      },
      onCancel: (stream) => stream.emit(CallState.CANCELED, { errorMessage: "stopped" }),
      getCall: held,
    });
    const listening = createServer(connectNodeAdapter({ routes })).listen(0, "127.0.0.1");
    await once(listening, "listening");
    const { port } = listening.address() as AddressInfo;
    const sessions = new Http2SessionManager(`http://127.0.0.1:${port}`);
    const transport = createConnectTransport({
      baseUrl: `http://127.0.0.1:${port}`,
      httpVersion: "2",
      sessionManager: sessions,
    });
    const client = registryClient(transport);
    const toolbox = createRegistryCaller({ client, toolset: toolset(), approvalWaitMs: 1 });
    const abort = new AbortController();
    const use = (what: string, signal: AbortSignal, onEvent: (report: CallReport) => void = () => undefined) =>
      toolbox.call({ id: what, callId: callIdOf("run-2", what), name: "exec", input: { do: what }, onEvent }, signal);
    try {
      const never = new AbortController().signal;
      const states = await Promise.all([
        use("run", never),
        use("hold", never),
        use("cancel", abort.signal, (report) => report.kind === "state" && abort.abort()),
      ]);
      expect(states.map(({ state }) => state)).toEqual(["succeeded", "held", "canceled"]);
      expect(calls).toHaveLength(3);
    } finally {
      sessions.abort();
      listening.close();
      await once(listening, "close");
    }
  });
});
