import { create } from "@bufbuild/protobuf";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { CallSchema, CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { createRegistryMetrics } from "./metrics.ts";

test("calls are counted by tool, decision and end, and whatever devices announce under one name", async () => {
  const registry = new Registry();
  const metrics = createRegistryMetrics(registry, new Set(["exec"]));
  const end = (tool: string, outcome: string | undefined, state: CallState) =>
    metrics.ended(create(CallSchema, { tool, state, ...(outcome !== undefined && { decision: { outcome } }) }));
  end("exec", "permit", CallState.SUCCEEDED);
  end("exec", "permit", CallState.SUCCEEDED);
  end("exec", "denial", CallState.DENIED);
  end("exec", undefined, CallState.FAILED);
  for (let index = 0; index < 1000; index++) end(`tool${index}:x`, "hold", CallState.REJECTED);
  const lines = (await registry.metrics()).split("\n").filter((line) => line.startsWith("reeve_calls_total"));
  expect(lines.sort()).toEqual([
    'reeve_calls_total{tool="announced",decision="hold",state="rejected"} 1000',
    'reeve_calls_total{tool="exec",decision="denial",state="denied"} 1',
    'reeve_calls_total{tool="exec",decision="none",state="failed"} 1',
    'reeve_calls_total{tool="exec",decision="permit",state="succeeded"} 2',
  ]);
});
