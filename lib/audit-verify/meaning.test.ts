import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { AuditRecordSchema } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { createMeaningCheck } from "./meaning.ts";

type EventInit = NonNullable<MessageInitShape<typeof AuditRecordSchema>["event"]>;

/** The kinds of what is wrong in a log of these records. */
function kinds(events: [callId: string, event: EventInit][]): string[] {
  const check = createMeaningCheck();
  return events.flatMap(([callId, event], index) =>
    check
      .take(index, create(AuditRecordSchema, { callId, event }))
      .map((finding) => `${finding.kind} ${finding.index}`),
  );
}

const permit = (grantId: string, argsDigest = "d", approvalId = ""): EventInit => ({
  case: "decided",
  value: { decision: DecisionKind.PERMIT, grantId, argsDigest, approvalId },
});
const outcome = (
  callId: string,
  grantId: string,
  argsDigest = "d",
  state: CallState = CallState.SUCCEEDED,
): EventInit => ({
  case: "outcome",
  value: { callId, grantId, argsDigest, state },
});
const approved = (approvalId: string, argsDigest = "d"): EventInit => ({
  case: "approvalDecided",
  value: { approvalId, argsDigest, state: ApprovalState.APPROVED },
});

it("finds nothing where every call that ran was permitted", () => {
  expect(
    kinds([
      ["c", permit("g")],
      ["c", outcome("c", "g")],
    ]),
  ).toEqual([]);
});

it("finds a call that ran without a permit", () => {
  expect(kinds([["c", outcome("c", "g")]])).toEqual(["orphan 0"]);
  expect(kinds([["c", outcome("c", "", "d", CallState.UNKNOWN)]])).toEqual(["orphan 0"]);
});

it("finds a call that ran with the permit of another call, or for other arguments", () => {
  expect(
    kinds([
      ["c", permit("g")],
      ["x", outcome("x", "g")],
    ]),
  ).toEqual(["orphan 1"]);
  expect(
    kinds([
      ["c", permit("g")],
      ["c", outcome("c", "g", "other")],
    ]),
  ).toEqual(["orphan 1"]);
});

it("finds a call whose permit came after its end", () => {
  expect(
    kinds([
      ["c", outcome("c", "g")],
      ["c", permit("g")],
    ]),
  ).toEqual(["orphan 0"]);
});

it("lets a call end without a permit where nothing ran", () => {
  expect(
    kinds([
      ["c", outcome("c", "", "d", CallState.DENIED)],
      ["e", outcome("e", "", "d", CallState.FAILED)],
    ]),
  ).toEqual([]);
});

it("finds a grant that was given twice", () => {
  expect(
    kinds([
      ["c", permit("g")],
      ["e", permit("g")],
    ]),
  ).toEqual(["duplicate_grant 1"]);
});

it("finds a permit by an approval that was never given, or for other arguments", () => {
  expect(kinds([["c", permit("g", "d", "apr-1")]])).toEqual(["unapproved 0"]);
  expect(
    kinds([
      ["c", approved("apr-1", "other")],
      ["c", permit("g", "d", "apr-1")],
    ]),
  ).toEqual(["unapproved 1"]);
  expect(
    kinds([
      ["c", approved("apr-1")],
      ["c", permit("g", "d", "apr-1")],
    ]),
  ).toEqual([]);
});

it("lets a call that waited for its device be permitted again, and end with either grant", () => {
  for (const used of ["g", "h"]) {
    expect(
      kinds([
        ["c", permit("g")],
        ["c", permit("h")],
        ["c", outcome("c", used)],
      ]),
    ).toEqual([]);
  }
});

it("lets fan-outs be permitted as a whole without a grant, which no call can have run with", () => {
  expect(
    kinds([
      ["f", permit("")],
      ["e", permit("")],
      ["f", outcome("f", "")],
    ]),
  ).toEqual(["orphan 2"]);
});

it("does not wait for the end of a call that was permitted and then denied, or of a fan-out", () => {
  const check = createMeaningCheck();
  check.take(0, create(AuditRecordSchema, { callId: "c", event: permit("g") }));
  check.take(
    1,
    create(AuditRecordSchema, { callId: "c", event: { case: "decided", value: { decision: DecisionKind.DENIAL } } }),
  );
  check.take(2, create(AuditRecordSchema, { callId: "f", event: permit("") }));
  expect(check.open()).toEqual([]);
});

it("lists permits whose call has no end", () => {
  const check = createMeaningCheck();
  check.take(0, create(AuditRecordSchema, { callId: "c", event: permit("g") }));
  check.take(1, create(AuditRecordSchema, { callId: "e", event: permit("h") }));
  check.take(2, create(AuditRecordSchema, { callId: "c", event: outcome("c", "g") }));
  expect(check.open()).toEqual([{ index: 1, callId: "e", grantId: "h" }]);
});
