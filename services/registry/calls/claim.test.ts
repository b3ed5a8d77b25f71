import { expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { testCall } from "../../../testkit/test-call.ts";
import type { Membership } from "../cluster/membership.ts";
import { createClaimer } from "./claim.ts";
import { createLiveCall, type LiveCall } from "./live-call.ts";
import type { Ownership } from "./ownership.ts";

const logger = createLogger({ service: "test", level: "silent" });

/** A claimer among replicas of which some are alive and some are gone; one that is neither has just started. */
function scene(
  owners: string[],
  { alive = [] as string[], gone = [] as string[], own = [] as string[], everyMs = 60_000 } = {},
) {
  const claimedFrom: string[][] = [];
  const resumed: string[] = [];
  /** What the database was asked for. */
  const asked: string[] = [];
  let looks = 0;
  const owned = new Map<string, LiveCall>();
  const stored = (id: string) => ({
    call: testCall({ id, state: CallState.HELD }),
    args: new Uint8Array(),
    owner: "rep-me",
    cancelWanted: false,
  });
  const claimer = createClaimer({
    ownership: {
      owners: async () => {
        asked.push("owners");
        return owners;
      },
      claim: async (from: readonly string[]) => {
        claimedFrom.push([...from]);
        return { calls: from.map((owner) => stored(`of ${owner}`)), outcomes: [] };
      },
      mine: async () => {
        asked.push("mine");
        return own;
      },
      myOutcomes: async () => [],
      wantedCancels: async () => own,
    } as unknown as Ownership,
    store: { get: async (id) => stored(id) },
    membership: {
      self: "rep-me",
      isAlive: (id: string) => alive.includes(id),
      isGone: (id: string) => gone.includes(id),
      look: async () => void looks++,
    } as unknown as Membership,
    catchUp: () => Promise.resolve(),
    owned: (id) => owned.get(id),
    resume: ({ call }) => resumed.push(call.id),
    send: () => undefined,
    logger,
    everyMs,
  });
  return { claimer, claimedFrom, resumed, asked, owned, looks: () => looks };
}

test("claims what replicas that are gone and what no replica owns, not what living ones own", async () => {
  const { claimer, claimedFrom, resumed } = scene(["rep-me", "rep-there", "rep-gone", ""], {
    alive: ["rep-there"],
    gone: ["rep-gone"],
  });
  await claimer.look();
  await claimer.close();
  expect(claimedFrom).toEqual([["rep-gone", ""]]);
  expect(resumed).toEqual(["of rep-gone", "of "]);
  expect(claimer.claimed).toBe(2);
});

test("looks for a replica that it does not know before it takes anything from it", async () => {
  const { claimer, claimedFrom, looks } = scene(["rep-new"]);
  await claimer.look();
  await claimer.close();
  expect([looks(), claimedFrom]).toEqual([1, []]);
});

test("resumes what it has lost hold of itself, and cancels what a caller requested to cancel", async () => {
  const { claimer, resumed, owned } = scene([], { own: ["held", "lost"], everyMs: 1 });
  const held = createLiveCall(testCall({ id: "held" }), new Uint8Array(), undefined);
  owned.set("held", held);
  await eventually(() => expect(resumed).toContain("lost"));
  await claimer.close();
  expect(new Set(resumed)).toEqual(new Set(["lost"]));
  expect(held.canceled.signal.aborted).toBe(true);
});

test("many who ask at once share a look, and none of them makes it look for its own", async () => {
  const { claimer, asked } = scene([]);
  await Promise.all(Array.from({ length: 100 }, () => claimer.look()));
  for (let i = 0; i < 10; i++) await claimer.look();
  await claimer.close();
  expect(asked).toEqual(Array.from({ length: 12 }, () => "owners"));
});
