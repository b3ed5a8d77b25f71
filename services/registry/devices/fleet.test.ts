import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecuteCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { openDatabase } from "../../../lib/store/database.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { pinnedDevice, recheckDevice } from "./device-store.ts";
import {
  dialedDevice,
  openTestFleet,
  shownDevice,
  type TestFleet,
  type TestFleetOptions,
} from "./testing/test-fleet.ts";

const open: TestFleet[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function fleetWith(options: TestFleetOptions = {}): Promise<TestFleet> {
  const one = await openTestFleet(options);
  open.push(one);
  return one;
}

const locked = (id: string): Error => fault(ErrorReason.DEVICE_LOCKED, { device: id, why: "lost" });
const isOnline = ({ directory }: TestFleet, { id }: { id: string }) => directory.byId(id)?.online === true;

test.each(["later", "in its first frame"])(
  "a device that says Hello twice, %s, changes nothing and is hung up on",
  async (when) => {
    const scene = await fleetWith();
    const device = shownDevice();
    const changed = device.hello(1n, { role: "prod" });
    const stream = device.attach(scene.sessions, device.hello(1n), ...(when === "later" ? [] : [changed]));
    if (when === "later") {
      await eventually(() => expect(isOnline(scene, device)).toBe(true));
      stream.say(changed);
    }
    expect(reasonOf(await stream.over)).toBe(ErrorReason.INVALID_INPUT);
    expect(scene.directory.byId(device.id)?.labels ?? {}).not.toEqual({ role: "prod" });
    await eventually(() => expect(isOnline(scene, device)).toBe(false));
  },
);

test("a count of dials that no number holds is refused, and holds up no other device", async () => {
  const scene = await fleetWith();
  const [evil, good] = [shownDevice("evil"), shownDevice("good")];
  const refused = await evil.attach(scene.sessions, evil.hello(2n ** 53n + 2n)).over;
  expect(reasonOf(refused)).toBe(ErrorReason.INVALID_INPUT);
  await scene.fleet.catchUp();
  good.attach(scene.sessions, good.hello(1n));
  await eventually(() => expect(isOnline(scene, good)).toBe(true));
});

describe("a device that is shut out", () => {
  test.each(["locked", "removed"])("by being %s during its admission is not let in", async (how) => {
    let isOut = false;
    let actNow = false;
    const scene: TestFleet = await fleetWith({
      admission: {
        async mayAttach(id) {
          if (isOut) throw how === "locked" ? locked(id) : identityRefused("revoked", id);
          if (!actNow) return;
          isOut = true;
          await (how === "locked" ? scene.fleet.recheck(id) : scene.fleet.forget(id));
        },
      },
    });
    const device = shownDevice();
    const before = device.attach(scene.sessions, device.hello(1n));
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    before.leave();
    await before.over;
    actNow = true;
    const stream = device.attach(scene.sessions, device.hello(2n));
    const expected = how === "locked" ? ErrorReason.DEVICE_LOCKED : ErrorReason.IDENTITY_REFUSED;
    expect(reasonOf(await stream.over)).toBe(expected);
    expect(scene.sessions.get(device.id) !== undefined).toBe(false);
  });

  test("does not get back the name that its removal has freed", async () => {
    const scene = await fleetWith({
      admission: {
        // The look before the transaction comes too early.
        mayAttach: async () => undefined,
        refusals: async (devices, trx) =>
          new Map(
            trx === undefined ? [] : devices.map(({ deviceId }) => [deviceId, identityRefused("revoked", deviceId)]),
          ),
      },
    });
    const device = shownDevice();
    expect(reasonOf(await device.attach(scene.sessions, device.hello(1n)).over)).toBe(ErrorReason.IDENTITY_REFUSED);
    expect(await pinnedDevice(scene.db, "nas")).toBeUndefined();
  });

  test("loses its session although no replica was notified", async () => {
    const out = new Set<string>();
    const scene = await fleetWith({
      admission: {
        mayAttach: async () => undefined,
        refusals: async (devices) =>
          new Map(devices.flatMap(({ deviceId }) => (out.has(deviceId) ? [[deviceId, locked(deviceId)]] : []))),
      },
    });
    const [lost, kept] = [shownDevice("lost"), shownDevice("kept")];
    const stream = lost.attach(scene.sessions, lost.hello(1n));
    kept.attach(scene.sessions, kept.hello(1n));
    await eventually(() => expect([isOnline(scene, lost), isOnline(scene, kept)]).toEqual([true, true]));
    out.add(lost.id);
    expect(reasonOf(await stream.over)).toBe(ErrorReason.DEVICE_LOCKED);
    expect(isOnline(scene, kept)).toBe(true);
  });

  test("by a transaction that says so loses its stream when that is read", async () => {
    const out = new Set<string>();
    const mayAttach = async (id: string) => {
      if (out.has(id)) throw locked(id);
    };
    const scene = await fleetWith({ admission: { mayAttach } });
    const device = shownDevice();
    const stream = device.attach(scene.sessions, device.hello(1n));
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    out.add(device.id);
    await scene.db.transaction().execute((trx) => recheckDevice(trx, device.id));
    expect(reasonOf(await stream.over)).toBe(ErrorReason.DEVICE_LOCKED);
  });

  test("ends the waiting calls: what was sent is lost, and what was not never was", async () => {
    const scene = await fleetWith();
    const device = shownDevice();
    const stream = device.attach(scene.sessions, device.hello(1n));
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    const link = scene.fleet.link(device.id);
    const sent = link?.start(create(ExecuteCommandSchema, { callId: "sent" }), () => undefined);
    await eventually(() => expect(stream.commands).toHaveLength(1));
    stream.leave();
    await stream.over;
    await eventually(() => expect(isOnline(scene, device)).toBe(false));
    const unsent = link?.start(create(ExecuteCommandSchema, { callId: "unsent" }), () => undefined);
    await scene.fleet.forget(device.id);
    expect(await Promise.all([sent, unsent])).toEqual([{ kind: "lost" }, { kind: "offline" }]);
  });

  test("leaves its calls to no device that gets its name", async () => {
    const scene = await fleetWith();
    const [before, after] = [shownDevice(), shownDevice()];
    const stream = before.attach(scene.sessions, before.hello(1n));
    await eventually(() => expect(isOnline(scene, before)).toBe(true));
    const ended = scene.fleet.link(before.id)?.start(create(ExecuteCommandSchema, { callId: "c" }), () => undefined);
    await eventually(() => expect(stream.commands).toHaveLength(1));
    // Both changes before this replica looks again.
    await scene.db.updateTable("devices").set({ removed: 1 }).execute();
    const next = after.attach(scene.sessions, after.hello(1n));
    expect(await ended).toEqual({ kind: "lost" });
    await eventually(() => expect(isOnline(scene, after)).toBe(true));
    expect(next.commands).toEqual([]);
    expect(scene.directory.byId(before.id)).toBeUndefined();
  });
});

describe("a dial with a number that was used before", () => {
  async function attachedOnce(onCloned: (id: string) => Promise<void>) {
    const scene = await fleetWith({ admission: { onCloned } });
    const device = shownDevice();
    const stream = device.attach(scene.sessions, device.hello(6n));
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    return { scene, device, stream };
  }

  test("that was given up while it waited is no clone", async () => {
    const onCloned = vi.fn(async () => undefined);
    const slow = Promise.withResolvers<void>();
    let asked = 0;
    const mayAttach = async () => (asked++ === 0 ? slow.promise : undefined);
    const scene = await fleetWith({ admission: { onCloned, mayAttach } });
    const device = shownDevice();
    const givenUp = device.attach(scene.sessions, device.hello(5n));
    await eventually(() => expect(asked).toBe(1));
    givenUp.leave();
    const stream = device.attach(scene.sessions, device.hello(6n));
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    slow.resolve();
    await givenUp.over;
    await scene.fleet.catchUp();
    expect(onCloned).not.toHaveBeenCalled();
    expect(stream.isOver()).toBe(false);
  });

  test("or a new one that was given up while it waited takes no stream's place", async () => {
    const slow = Promise.withResolvers<void>();
    let asked = 0;
    // The first stream is asked about when it comes and once it is linked.
    const mayAttach = async () => (++asked === 3 ? slow.promise : undefined);
    const scene = await fleetWith({ admission: { mayAttach } });
    const device = shownDevice();
    const stream = device.attach(scene.sessions, device.hello(6n));
    await eventually(() => expect(asked).toBe(2));
    const givenUp = device.attach(scene.sessions, device.hello(7n));
    await eventually(() => expect(asked).toBe(3));
    givenUp.leave();
    await givenUp.over;
    slow.resolve();
    // Written after whatever the dial that was given up writes.
    await scene.fleet.recheck(device.id);
    const { attach_count } = await scene.db.selectFrom("devices").select("attach_count").executeTakeFirstOrThrow();
    expect(attach_count).toBe(6);
    expect(stream.isOver()).toBe(false);
  });

  test("that was overtaken while it waited is sent to dial again, however long it stays alive", async () => {
    const onCloned = vi.fn(async () => undefined);
    const slow = Promise.withResolvers<void>();
    let asked = 0;
    const mayAttach = async () => (asked++ === 0 ? slow.promise : undefined);
    const db = await openDatabase<RegistryTables>({ path: ":memory:", migrations: registryMigrations });
    const [one, other] = [
      await fleetWith({ db, admission: { onCloned, mayAttach } }),
      await fleetWith({ db, admission: { onCloned } }),
    ];
    const device = shownDevice();
    const early = device.attach(one.sessions, device.hello(5n));
    await eventually(() => expect(asked).toBe(1));
    device.attach(other.sessions, device.hello(6n));
    await eventually(() => expect(isOnline(other, device)).toBe(true));
    slow.resolve();
    expect(reasonOf(await early.over)).toBe(ErrorReason.NOT_READY);
    expect(onCloned).not.toHaveBeenCalled();
  });

  test("and that hangs up soon is no clone either", async () => {
    const onCloned = vi.fn(async () => undefined);
    const { scene, device, stream } = await attachedOnce(onCloned);
    const late = device.attach(scene.sessions, device.hello(5n));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(late.isOver()).toBe(false);
    late.leave();
    await late.over;
    expect(onCloned).not.toHaveBeenCalled();
    expect(stream.isOver()).toBe(false);
  });

  test.each([6n, 5n])("and that goes on living is a clone: %d after 6", async (count) => {
    const onCloned = vi.fn(async () => undefined);
    const { scene, device } = await attachedOnce(onCloned);
    const clone = device.attach(scene.sessions, device.hello(count));
    expect(reasonOf(await clone.over)).toBe(ErrorReason.IDENTITY_REFUSED);
    expect(onCloned).toHaveBeenCalledExactlyOnceWith(device.id);
  });

  test("and that comes again and again is a clone, however soon it hangs up", async () => {
    const onCloned = vi.fn(async () => undefined);
    const { scene, device } = await attachedOnce(onCloned);
    for (const count of [2n, 3n]) {
      const clone = device.attach(scene.sessions, device.hello(count));
      await new Promise((resolve) => setTimeout(resolve, 50));
      clone.leave();
      await clone.over;
    }
    expect(onCloned).not.toHaveBeenCalled();
    const third = device.attach(scene.sessions, device.hello(4n));
    expect(reasonOf(await third.over)).toBe(ErrorReason.IDENTITY_REFUSED);
    expect(onCloned).toHaveBeenCalledOnce();
  });

  test("locks no device where the registry has drained", async () => {
    const onCloned = vi.fn(async () => undefined);
    const { scene, device } = await attachedOnce(onCloned);
    const late = device.attach(scene.sessions, device.hello(5n));
    scene.fleet.drain();
    expect(reasonOf(await late.over)).toBe(ErrorReason.NOT_READY);
    expect(onCloned).not.toHaveBeenCalled();
  });
});

describe("a device that is dialed", () => {
  test("is asked about before it is sent anything", async () => {
    const device = shownDevice("direct");
    const dialed = dialedDevice(() => device.hello(0n));
    const out = new Set<string>();
    const mayAttach = async (id: string) => {
      if (out.has(id)) throw locked(id);
    };
    const scene = await fleetWith({ admission: { mayAttach }, dialers: new Map([["direct", dialed.dialer]]) });
    await scene.fleet.started(5000);
    const back = Promise.withResolvers<void>();
    dialed.hangUp(back.promise);
    await eventually(() => expect(isOnline(scene, device)).toBe(false));
    out.add(device.id);
    const ended = scene.fleet.link(device.id)?.start(create(ExecuteCommandSchema, { callId: "c" }), () => undefined);
    back.resolve();
    expect(await ended).toMatchObject({ kind: "offline" });
    expect(dialed.commands).toEqual([]);
    out.delete(device.id);
    await scene.fleet.recheck(device.id);
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
  }, 15_000);

  test("is refused at its first dial, and dialed again only when it may connect", async () => {
    const device = shownDevice("direct");
    const dialed = dialedDevice(() => device.hello(0n));
    const out = new Set([device.id]);
    const refusals = async () => new Map([...out].map((id) => [id, locked(id)]));
    const mayAttach = async (id: string) => {
      if (out.has(id)) throw locked(id);
    };
    const scene = await fleetWith({
      admission: { mayAttach, refusals },
      dialers: new Map([["direct", dialed.dialer]]),
    });
    await scene.fleet.started(5000);
    expect([dialed.dials, scene.fleet.connectedHere]).toEqual([1, 0]);
    out.clear();
    await eventually(() => expect(scene.fleet.connectedHere).toBe(1));
    expect(dialed.dials).toBe(2);
  });

  test("is dialed again when it was not known whether it may connect", async () => {
    const device = shownDevice("direct");
    const dialed = dialedDevice(() => device.hello(0n));
    let failures = 0;
    const mayAttach = async () => {
      if (failures++ === 0) throw new Error("the database is unavailable");
    };
    const scene = await fleetWith({ admission: { mayAttach }, dialers: new Map([["direct", dialed.dialer]]) });
    await eventually(() => expect(scene.fleet.connectedHere).toBe(1));
  });

  test("keeps its session while it is not known whether it may still connect", async () => {
    const device = shownDevice("direct");
    const dialed = dialedDevice(() => device.hello(0n));
    let isDown = false;
    let asked = 0;
    const mayAttach = async () => {
      asked++;
      if (isDown) throw new Error("the database is unavailable");
    };
    const scene = await fleetWith({ admission: { mayAttach }, dialers: new Map([["direct", dialed.dialer]]) });
    await eventually(() => expect(isOnline(scene, device)).toBe(true));
    isDown = true;
    const before = asked;
    await scene.fleet.recheck(device.id);
    await eventually(() => expect(asked).toBeGreaterThan(before + 1));
    expect([dialed.dials, isOnline(scene, device)]).toEqual([1, true]);
  });
});
