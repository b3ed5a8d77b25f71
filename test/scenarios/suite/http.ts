import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { approveCall } from "../../../testkit/approvals.ts";
import type { Scene } from "./scene.ts";

/** Plain HTTP, for callers without a client: the same calls, with the state as HTTP status. */
export function describeHttp(scene: () => Scene): void {
  const request = async (path: string, token: string | undefined, init: RequestInit = {}) => {
    const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const headers = { "content-type": "application/json", ...authorization };
    const response = await fetch(`${scene().backend.registry.url}${path}`, { ...init, headers });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    };
  };
  const invoke = (who: "operator" | "agent", body: object) =>
    request("/invoke", scene().backend.tokens[who], { method: "POST", body: JSON.stringify(body) });

  test("GET /tools lists what can be called", async () => {
    const { status, body } = await request("/tools", scene().backend.tokens.agent);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      tools: expect.arrayContaining([expect.objectContaining({ name: "exec" })]) as unknown,
    });
  });

  test("POST /invoke answers 200 with the call", async () => {
    const file = scene().newFile();
    const { status, body } = await invoke("operator", {
      device: "this",
      tool: "exec",
      params: { argv: ["touch", file] },
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      spec: { ingress: "INGRESS_HTTP" },
      status: { state: "CALL_STATE_SUCCEEDED", decision: { kind: "DECISION_KIND_PERMIT" } },
    });
    expect(existsSync(file)).toBe(true);
  });

  test("POST /invoke answers 202 with the call while it is held", async () => {
    const params = { argv: ["touch", scene().newFile()] };
    const { status, headers, body } = await invoke("agent", { tool: "exec", params, approvalWait: "0.001s" });
    expect(status).toBe(202);
    const { id, status: held } = body as { id: string; status: { state: string; approval: { id: string } } };
    const { id: approvalId } = held.approval;
    expect(held.state).toBe("CALL_STATE_HELD");
    expect(approvalId).toMatch(/^apr-/);
    expect(body.message).toContain(`a person has to decide about approval ${approvalId}`);
    expect(headers.get("location")).toBe(`/calls/${id}`);
    expect(body.message).toContain(`GET /calls/${id}`);
  });

  test("GET /calls/ID answers with the call to who may see it only", async () => {
    const { tokens } = scene().backend;
    const params = { argv: ["touch", scene().newFile()] };
    const { headers, body } = await invoke("operator", { tool: "exec", params });
    const path = `/calls/${String(body.id)}`;
    expect(headers.get("location")).toBeNull();
    const shown = await request(path, tokens.operator);
    expect(shown).toMatchObject({ status: 200, body: { id: body.id, status: { state: "CALL_STATE_SUCCEEDED" } } });
    // To an agent, another's call does not exist.
    expect(await request(path, tokens.agent)).toMatchObject({ status: 404, body: { reason: "not_found" } });
    expect((await request(path, undefined)).status).toBe(401);
    expect((await request("/calls/none", tokens.operator)).status).toBe(404);
    expect((await request(`/calls/${"a".repeat(65)}`, tokens.operator)).status).toBe(400);
    expect((await request("/calls/%ff", tokens.operator)).status).toBe(404);
    expect((await request(path, tokens.operator, { method: "DELETE" })).status).toBe(405);
  });

  test("GET /calls/ID/events sends what happens to a call until it ends", async () => {
    const { backend, operator, newFile } = scene();
    const { registry, tokens } = backend;
    const { body } = await invoke("agent", { tool: "exec", params: { argv: ["touch", newFile()] }, noWait: true });
    const id = String(body.id);
    const headers = { authorization: `Bearer ${tokens.agent}` };
    const response = await fetch(`${registry.url}/calls/${id}/events`, { headers });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    await approveCall(operator, id);
    const sent = (await response.text()).split("\n\n").filter((text) => text !== "");
    const states = sent.map((text) => {
      const { event } = JSON.parse(text.replace(/^data: /, "")) as { event: { call?: { status: { state: string } } } };
      return event.call?.status.state;
    });
    expect([states.at(0), states.at(-1)]).toEqual(["CALL_STATE_HELD", "CALL_STATE_SUCCEEDED"]);
    expect(await request("/calls/none/events", tokens.agent)).toMatchObject({
      status: 404,
      body: { reason: "not_found" },
    });
  });

  test("POST /invoke answers 403 and 404 for what the device refuses or does not find", async () => {
    const outside = await invoke("operator", { tool: "exec", params: { argv: ["true"], cwd: "/root" } });
    expect(outside.status).toBe(403);
    expect(outside.body).toMatchObject({ status: { error: { reason: "ERROR_REASON_PATH_OUTSIDE_ROOTS" } } });
    const missing = await invoke("operator", { tool: "fs.read", params: { path: scene().newFile() } });
    expect(missing.status).toBe(404);
    expect(missing.body).toMatchObject({ status: { error: { reason: "ERROR_REASON_TARGET_NOT_FOUND" } } });
  });

  test("POST /invoke answers 400 and names the field", async () => {
    const { status, body } = await invoke("operator", { tool: "exec", params: { argv: "uname" } });
    expect(status).toBe(400);
    expect(body).toMatchObject({ reason: "invalid_input", violations: [{ field: "params.argv" }] });
  });

  test("POST /invoke answers 403 where the call is denied", async () => {
    const { status, body } = await invoke("agent", { tool: "fs.read", params: { path: "/etc/shadow" } });
    expect(status).toBe(403);
    const denied = { state: "CALL_STATE_DENIED", error: { reason: "ERROR_REASON_POLICY_DENIED" } };
    expect(body).toMatchObject({ status: denied });
  });

  test("POST /invoke answers 404 with what there is", async () => {
    const tool = await invoke("operator", { tool: "exek" });
    expect(tool.status).toBe(404);
    expect(tool.body).toMatchObject({
      reason: "unknown_tool",
      metadata: { available: expect.stringContaining("exec") as string },
    });
    const device = await invoke("operator", { device: "laptop", tool: "exec" });
    expect(device.status).toBe(404);
    expect(device.body).toMatchObject({ reason: "unknown_device", metadata: { available: scene().deviceNames } });
  });

  test("other methods and paths are refused", async () => {
    const { agent } = scene().backend.tokens;
    const method = await request("/invoke", agent);
    expect([method.status, method.headers.get("allow")]).toEqual([405, "POST"]);
    expect((await request("/nothing", agent)).status).toBe(404);
  });

  test.each([
    ["no token", undefined],
    ["an unknown token", `rv_${"0".repeat(12)}_${"A".repeat(43)}`],
  ])("nothing is served to %s", async (_, token) => {
    const file = scene().newFile();
    const body = JSON.stringify({ tool: "exec", params: { argv: ["touch", file] } });
    expect((await request("/invoke", token, { method: "POST", body })).status).toBe(401);
    expect((await request("/tools", token)).status).toBe(401);
    expect(existsSync(file)).toBe(false);
  });
}
