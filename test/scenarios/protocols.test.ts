import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";

const run = promisify(execFile);
const BUF = join(import.meta.dirname, "..", "..", "node_modules", ".bin", "buf");

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(() => plane.close());

/** buf curl outside of the repository: what it knows of a service, it knows by reflection. */
async function bufCurl(...args: string[]): Promise<string> {
  const { stdout } = await run(BUF, ["curl", "--http2-prior-knowledge", ...args], { cwd: tmpdir() });
  return stdout;
}

const SERVICES = {
  registry: ["reeve.call.v1.CallService", "reeve.device.v1.DeviceService", "reeve.tool.v1.ToolService"],
  policy: ["reeve.audit.v1.AuditService", "reeve.approval.v1.ApprovalService", "reeve.policy.v1.PolicyService"],
  device: ["reeve.device.v1.DeviceAgentService"],
} as const;

const READS = {
  registry: ["reeve.device.v1.DeviceService/ListDevices", '"this"'],
  policy: ["reeve.audit.v1.AuditService/GetCheckpoint", '"note"'],
  device: ["reeve.device.v1.DeviceAgentService/GetManifest", '"payloadType"'],
} as const;

describe.each(["registry", "policy", "device"] as const)("the %s", (name) => {
  test("lists its services by reflection", async () => {
    const listed = (await bufCurl("--list-services", plane.processes[name].url)).trim().split("\n");
    expect(listed).toEqual(expect.arrayContaining([...SERVICES[name], "grpc.health.v1.Health"]));
  });

  test.each(["connect", "grpc", "grpcweb"])("answers over %s", async (protocol) => {
    const [method, expected] = READS[name];
    const authorization = `Authorization: Bearer ${plane.tokens.operator}`;
    const url = `${plane.processes[name].url}/${method}`;
    expect(await bufCurl("--protocol", protocol, "-H", authorization, "-d", "{}", url)).toContain(expected);
  });

  test("refuses a caller without a token", async () => {
    const [method] = READS[name];
    const refused = bufCurl("-d", "{}", `${plane.processes[name].url}/${method}`);
    await expect(refused).rejects.toMatchObject({ stderr: expect.stringContaining("unauthenticated") as string });
  });
});

test("a governed call works over every protocol by reflection alone", async () => {
  const authorization = `Authorization: Bearer ${plane.tokens.operator}`;
  const url = `${plane.registry.url}/reeve.call.v1.CallService/CallTool`;
  for (const protocol of ["connect", "grpc", "grpcweb"]) {
    const params = { text: `by ${protocol}` };
    const body = JSON.stringify({ device: "this", tool: "device.ping", params });
    const answer = JSON.parse(await bufCurl("--protocol", protocol, "-H", authorization, "-d", body, url)) as {
      call: { status: { state: string; output: unknown } };
    };
    expect(answer.call.status).toMatchObject({ state: "CALL_STATE_SUCCEEDED", output: params });
  }
});
