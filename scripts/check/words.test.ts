import { describe, expect, it } from "vitest";
import { usesIn } from "../words/uses.ts";
import { useText } from "./words.ts";

const wordsOf = (text: string) =>
  usesIn("a.ts", text)
    .map(({ word }) => word)
    .sort();

describe("the word list", () => {
  it.each([
    ["const callWish = wishOf(call);", ["wish", "wish"]],
    ["if (bus.isHeard) tell(nobody);", ["heard", "tell", "nobody"]],
    ["/** The way of a call while its device is away. */", ["way of a call", "away"]],
    ["callAtRest(id)", ["at rest"]],
    ["const FAN_OUT = asksAboutWhole(judged.request);", ["about whole", "judged"]],
    ["The approval was rejected: APPROVAL_REJECTED", ["approval was rejected", "approval rejected"]],
    ["takes the calls over, and takeUp", ["takes the calls over", "take up"]],
    ["the enrolment was cancelled by an unauthorised dialler", ["enrolment", "cancelled", "unauthorised", "dialler"]],
    ["a version of 0 is none; the policy in force", ["is none", "in force"]],
    ["NATS is there now", ["is there"]],
  ])("finds what is retired in %s", (text, words) => {
    expect(wordsOf(text)).toEqual(words.toSorted());
  });

  it.each([
    "the call's lifecycle, its lifetime and the half-life of a certificate",
    "a heartbeat; understanding what is outstanding; discard the wildcard",
    "await expect(call).rejects.toThrow(); Promise.allSettled(calls); stack.adopt(server, close);",
    "undefined where there is none; there are none of them; is there a device?",
    "data sealed at rest; throws it away; right away; in this way; it is one of the whole suite",
    "waits until settled; was analyzed in several analyses",
    "reads a whole request; a whole number; a gateway, always",
    "tclsh wish expect",
  ])("lets ordinary English be: %s", (text) => {
    expect(wordsOf(text)).toEqual([]);
  });

  it("names the place, in a path too, and the better word", () => {
    expect(usesIn("lib/wish.ts", "a\nnudge()").map(useText)).toEqual([
      'lib/wish.ts: "wish" → request, call request',
      'lib/wish.ts:2: "nudge" → notify, wake',
    ]);
  });
});
