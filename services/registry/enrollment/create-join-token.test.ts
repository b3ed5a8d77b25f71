import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { authorityId } from "../../../lib/identity/authority.ts";
import { formatJoinToken, parseJoinToken } from "../../../lib/identity/join-token.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { refusal, sceneOf } from "./testing/scene.ts";
import { testDevice } from "./testing/test-device.ts";
import { SERVICE_CA, type TestEnrollment, testEnrollment } from "./testing/test-enrollment.ts";

let plane: TestEnrollment;

beforeEach(async () => {
  plane = await testEnrollment();
});
afterEach(() => plane.close());

const { invite, changes } = sceneOf(() => plane);

describe("a join token", () => {
  test("says where the registry is, how it is known, and who may come", async () => {
    const { token, enrollment } = await invite();
    const parsed = parseJoinToken(token);
    expect(parsed).toMatchObject({ urls: ["https://127.0.0.1:7400"], name: "web1", labels: { role: "web" } });
    expect(parsed.ca).toBe(authorityId(SERVICE_CA));
    expect(Buffer.from(parsed.secret, "base64url")).toHaveLength(16);
    expect(enrollment).toMatchObject({ name: "web1", state: State.INVITED, createdBy: "ann", deviceId: "" });
    expect(Number(enrollment?.expireTime?.seconds) * 1000).toBeGreaterThan(plane.clock.now + 14 * 60_000);
    expect(changes()).toContain("invited");
  });

  test("is kept as a hash", async () => {
    const { secret } = parseJoinToken((await invite()).token);
    const rows = await plane.db.selectFrom("enrollments").selectAll().execute();
    expect(
      JSON.stringify(rows.map((row) => ({ ...row, secret_hash: Buffer.from(row.secret_hash).toString("latin1") }))),
    ).not.toContain(secret);
  });

  test("does not work before its making is recorded", async () => {
    await plane.close();
    plane = await testEnrollment({ recordWaitMs: 20 });
    plane.policy(false);
    expect(await refusal(invite())).toBe("POLICY_UNAVAILABLE");
    expect((await plane.operator.listEnrollments({})).enrollments).toEqual([]);
    plane.policy(true);
    await eventually(async () => expect((await plane.operator.listEnrollments({})).enrollments).toHaveLength(1));
  });

  test.each(["rvj1", "enr-1", `enr-${"0".repeat(32)}`])("that was never made is unknown: %s", async (id) => {
    const made = parseJoinToken((await invite()).token);
    expect(await refusal(plane.anybody.join(await testDevice().joining(formatJoinToken({ ...made, id }))))).toBe(
      "JOIN_REFUSED unknown",
    );
  });

  test("with another secret is unknown", async () => {
    const made = parseJoinToken((await invite()).token);
    const token = formatJoinToken({ ...made, secret: Buffer.alloc(16).toString("base64url") });
    expect(await refusal(plane.anybody.join(await testDevice().joining(token)))).toBe("JOIN_REFUSED unknown");
    expect(changes()).not.toContain("refused");
  });

  test("has no use after its time", async () => {
    const { token } = await invite();
    plane.clock.now += 15 * 60_000;
    expect(await refusal(plane.anybody.join(await testDevice().joining(token)))).toBe("JOIN_REFUSED expired");
    const { enrollments } = await plane.operator.listEnrollments({ state: State.EXPIRED });
    expect(enrollments).toMatchObject([{ name: "web1", state: State.EXPIRED }]);
    expect((await plane.operator.listEnrollments({ state: State.INVITED })).enrollments).toEqual([]);
  });

  test.each(["dev-0123456789abcdef", `enr-${"0".repeat(32)}`])(
    "is for no name that is like an id: %s",
    async (name) => {
      const error = await invite(name).catch((thrown: unknown) => thrown);
      expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field: "name" } });
    },
  );

  test("is made by operators only", async () => {
    expect(await refusal(plane.anybody.createJoinToken({ name: "x" }))).toBe("UNAUTHENTICATED");
    expect(await refusal(plane.device("dev-1").createJoinToken({ name: "x" }))).toBe("ROLE_REQUIRED");
  });
});
