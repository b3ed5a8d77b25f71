import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { create, toJsonString } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JoinRequestSchema } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { createServer, type Server } from "../../../lib/server/server.ts";
import { sceneOf } from "./testing/scene.ts";
import { testDevice } from "./testing/test-device.ts";
import { type TestEnrollment, testEnrollment } from "./testing/test-enrollment.ts";

let plane: TestEnrollment;
let server: Server;
beforeEach(async () => {
  plane = await testEnrollment();
  server = await createServer({
    routes: plane.enrollment.routes,
    authenticate: () => undefined,
    logger: createLogger({ service: "test", level: "silent" }),
  });
});
afterEach(async () => {
  await server.close(0);
  await plane.close();
});

/** Joins over the network, from an address of this machine. Resolves with the reason of the refusal, or "". */
async function join(body: string, localAddress: string): Promise<string> {
  const headers = { "content-type": "application/json" };
  const url = `${server.url}/reeve.enrollment.v1.EnrollmentService/Join`;
  const sent = httpRequest(url, { method: "POST", headers, localAddress, agent: false });
  sent.end(body);
  const answer = await new Promise<NodeJS.ReadableStream>((resolve, reject) =>
    sent.on("response", resolve).on("error", reject),
  );
  const { details } = JSON.parse(await text(answer)) as { details?: [{ debug: { reason: string } }] };
  return details?.[0].debug.reason.replace("ERROR_REASON_", "") ?? "";
}

test("an address that shows too many wrong tokens has to wait, a right one from elsewhere gets in", async () => {
  const { token } = await sceneOf(() => plane).invite("web1", { autoConfirm: true });
  const right = toJsonString(JoinRequestSchema, create(JoinRequestSchema, await testDevice().joining(token)));
  const wrong = right.replace(/"secret":"[^"]*"/, `"secret":"${"A".repeat(22)}"`);
  expect(wrong).not.toBe(right);
  const reasons: string[] = [];
  for (let i = 0; i < 40; i++) reasons.push(await join(wrong, "127.0.0.2"));
  expect(reasons[0]).toBe("JOIN_REFUSED");
  expect(reasons[29]).toBe("JOIN_REFUSED");
  expect(reasons.slice(30)).toContain("RATE_LIMITED");
  expect(await join(right, "127.0.0.3")).toBe("");
});
