import { create } from "@bufbuild/protobuf";
import { expect, test, vi } from "vitest";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  type DeviceFrame,
  DeviceFrameSchema,
  DeviceHelloSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { createDeviceSession, nextState, type SessionEvent, type SessionState } from "./session.ts";

const STATES: readonly SessionState[] = ["connecting", "admitted", "live", "draining", "gone"];
const EVENTS: readonly SessionEvent[] = ["admit", "open", "drain", "end"];

/** Every state and event: what comes of it; "-" where it is illegal. */
const TABLE: Record<SessionState, Record<SessionEvent, SessionState | "-">> = {
  connecting: { admit: "admitted", open: "-", drain: "-", end: "gone" },
  admitted: { admit: "-", open: "live", drain: "draining", end: "gone" },
  live: { admit: "-", open: "-", drain: "draining", end: "gone" },
  draining: { admit: "-", open: "-", drain: "draining", end: "gone" },
  gone: { admit: "-", open: "-", drain: "gone", end: "gone" },
};

test.each(STATES.flatMap((state) => EVENTS.map((event) => [state, event] as const)))("%s, %s", (state, event) => {
  expect(nextState(state, event) ?? "-").toBe(TABLE[state][event]);
});

/** A session on a stream that says its hello and then what a test pushes. */
function open(frames: readonly DeviceFrame[] = []) {
  const gone = new AbortController();
  const stream = {
    frames: (async function* () {
      yield* frames;
    })(),
    first: create(DeviceFrameSchema, { events: [{ event: { case: "hello", value: {} } }] }),
    gone: gone.signal,
    isAlive: async () => true,
    send: vi.fn<(commands: unknown) => void>(),
    end: vi.fn((error: unknown) => gone.abort(error)),
  };
  const manifest = create(ManifestSchema, { deviceId: "dev-0123456789abcdef", name: "nas" });
  const hello = { manifest, digest: "", envelope: create(SignedEnvelopeSchema), attachCount: 1, keyringVersion: 0n };
  return { gone, stream, session: createDeviceSession("attached", hello, stream) };
}

const nothing = async function* () {};

test("goes from its hello to its end", async () => {
  const { session, stream } = open([create(DeviceFrameSchema)]);
  const seen: SessionState[] = [session.state];
  session.move("admit");
  seen.push(session.state);
  for await (const _ of session.open(nothing(), new AbortController().signal)) seen.push(session.state);
  expect([...seen, session.state]).toEqual(["connecting", "admitted", "live", "live", "gone"]);
  expect(stream.send).toHaveBeenCalledOnce();
  expect(stream.end).toHaveBeenCalledOnce();
});

test("is opened once, and not before its admission", async () => {
  const { session } = open();
  const { signal } = new AbortController();
  await expect(session.open(nothing(), signal).next()).rejects.toThrow("connecting cannot open");
  session.move("admit");
  await session.open(nothing(), signal).next();
  await expect(session.open(nothing(), signal).next()).rejects.toThrow("live cannot open");
});

test("is gone with its stream, and cannot be admitted after that", () => {
  const { session, gone } = open();
  gone.abort(new Error("reset"));
  expect(session.state).toBe("gone");
  expect(() => session.move("admit")).toThrow("gone cannot admit");
});

test("ends where a second hello comes", async () => {
  const again = create(DeviceFrameSchema, { events: [{ event: { case: "hello", value: create(DeviceHelloSchema) } }] });
  const { session } = open([again]);
  session.move("admit");
  await expect(Array.fromAsync(session.open(nothing(), new AbortController().signal))).rejects.toThrow("one hello");
  expect(session.state).toBe("gone");
});
