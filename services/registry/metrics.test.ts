import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { testCall } from "../../testkit/test-call.ts";
import { createRegistryMetrics } from "./metrics.ts";

test("calls are counted by tool, decision and end, and whatever devices announce under one name", async () => {
  const registry = new Registry();
  const metrics = createRegistryMetrics(registry, new Set(["exec"]));
  const end = (tool: string, kind: DecisionKind | undefined, state: CallState) =>
    metrics.ended(testCall({ tool, state, ...(kind !== undefined && { decision: { kind } }) }));
  end("exec", DecisionKind.PERMIT, CallState.SUCCEEDED);
  end("exec", DecisionKind.PERMIT, CallState.SUCCEEDED);
  end("exec", DecisionKind.DENIAL, CallState.DENIED);
  end("exec", undefined, CallState.FAILED);
  for (let index = 0; index < 1000; index++) end(`tool${index}:x`, DecisionKind.HOLD, CallState.DENIED);
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith("reeve_calls_total"));
  expect(lines.sort()).toEqual([
    'reeve_calls_total{tool="announced",decision="hold",state="denied"} 1000',
    'reeve_calls_total{tool="exec",decision="denial",state="denied"} 1',
    'reeve_calls_total{tool="exec",decision="none",state="failed"} 1',
    'reeve_calls_total{tool="exec",decision="permit",state="succeeded"} 2',
  ]);
});
