import { Code, type ConnectError } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type Authenticate, type Principal, requireRole } from "../auth/principal.ts";
import { fault, faultDetail } from "../fault/fault.ts";
import { createCredentialWatch } from "./credentials.ts";

const agent: Principal = { id: "a", kind: "agent", roles: [Role.AGENT], name: "a" };

function follow(authenticate: Authenticate, principal = agent, now?: () => number) {
  const onRefused = vi.fn<(refusal: ConnectError) => void>();
  const authorize = (found: Principal) => void requireRole(found, [Role.AGENT]);
  const watch = createCredentialWatch(authenticate, now);
  const followed = watch.follow({ authorization: "Bearer x", principal, authorize, onRefused });
  return { followed, onRefused, watch };
}

const whyOf = (error: unknown) => faultDetail(error)?.metadata.why;

test("a token that is revoked is refused by itself, once, and from then on at each message", async () => {
  let found: Principal | undefined = agent;
  const { followed, onRefused } = follow(() => found);
  expect(() => followed.check()).not.toThrow();
  found = undefined;
  await eventually(() => expect(onRefused).toHaveBeenCalled());
  expect(onRefused.mock.calls.map(([refusal]) => [refusal.code, whyOf(refusal)])).toEqual([
    [Code.Unauthenticated, "revoked"],
  ]);
  expect(() => followed.check()).toThrow("the token was revoked");
  expect(onRefused).toHaveBeenCalledTimes(1);
});

test("a token that expires is refused, also while its provider is unavailable", async () => {
  let now = 0;
  const unavailable = fault(ErrorReason.NOT_READY, {}, { message: "no provider" });
  const authenticate = vi.fn<Authenticate>(() => Promise.reject(unavailable));
  const { onRefused } = follow(authenticate, { ...agent, expireMs: 1000 }, () => now);
  await eventually(() => expect(authenticate.mock.calls.length).toBeGreaterThan(1));
  expect(onRefused).not.toHaveBeenCalled();
  now = 1000;
  await eventually(() => expect(onRefused).toHaveBeenCalled());
  expect(whyOf(onRefused.mock.lastCall?.[0])).toBe("expired");
});

test("a token that has lost the role is refused as a new request would be", async () => {
  let found = agent;
  const { onRefused } = follow(() => found);
  found = { ...agent, roles: [Role.AUDITOR] };
  await eventually(() => expect(onRefused).toHaveBeenCalled());
  expect(onRefused.mock.lastCall?.[0].code).toBe(Code.PermissionDenied);
});

test("where it cannot be found out, nothing goes on", async () => {
  const { onRefused } = follow(() => {
    throw new Error("the file is damaged");
  });
  await eventually(() => expect(onRefused).toHaveBeenCalled());
  const refusal = onRefused.mock.lastCall?.[0];
  expect(refusal?.code).toBe(Code.Unauthenticated);
  expect(refusal?.message).not.toContain("damaged");
});

test("requests with one header are looked at once for all, and one that is over is not refused", async () => {
  let found: Principal | undefined = agent;
  const { followed, onRefused, watch } = follow(() => found);
  const other = vi.fn<(refusal: ConnectError) => void>();
  watch.follow({ authorization: "Bearer x", principal: agent, authorize: () => undefined, onRefused: other });
  followed.release();
  followed.release();
  found = undefined;
  await eventually(() => expect(other).toHaveBeenCalled());
  expect(onRefused).not.toHaveBeenCalled();
});

test("no provider is asked when no request is open", async () => {
  const authenticate = vi.fn<Authenticate>(() => agent);
  const { followed } = follow(authenticate);
  await eventually(() => expect(authenticate).toHaveBeenCalled());
  followed.release();
  const asked = authenticate.mock.calls.length;
  await new Promise((resolve) => setTimeout(resolve, 1200));
  expect(authenticate).toHaveBeenCalledTimes(asked);
});

test("a fault of the provider is what the caller gets", async () => {
  const { onRefused } = follow(async () => {
    throw fault(ErrorReason.TOKEN_REFUSED, { why: "signature" }, { message: "no" });
  });
  await eventually(() => expect(onRefused).toHaveBeenCalled());
  expect(whyOf(onRefused.mock.lastCall?.[0])).toBe("signature");
});
