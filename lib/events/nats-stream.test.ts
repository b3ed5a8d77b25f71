import { connect, type StreamAPI } from "nats";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { checkNatsVersion, ensureStream, STREAM } from "./nats-stream.ts";

test.each(["2.8.4", "1.4.1", "0.9.6", "", "dev"])("refuses server version %j", (version) => {
  expect(checkNatsVersion(version)).toEqual({
    kind: "refused",
    message: `the NATS server's version is "${version}"; 2.9 or later is needed`,
  });
});

test.each([
  ["2.9.0", 2],
  ["2.10.27", 2],
  ["2.11.0", 1],
  ["2.12.7", 0],
  ["2.14.0-beta.1", 0],
  ["3.0.0", 0],
])("takes server version %s with %d reservations", (version, reservations) => {
  const checked = checkNatsVersion(version);
  expect(checked.kind === "supported" && checked.degraded.length).toBe(reservations);
});

describe("the stream", () => {
  let parts: AsyncDisposableStack;
  let streams: StreamAPI;
  beforeEach(async () => {
    parts = new AsyncDisposableStack();
    const server = await startNatsServer();
    parts.defer(() => server.close());
    const nc = await connect({ servers: server.url });
    parts.defer(() => nc.close());
    ({ streams } = await nc.jetstreamManager());
  });
  afterEach(() => parts.disposeAsync());

  /** Another process makes this stream just before the one that is tested does. */
  function overtaken(by: Parameters<StreamAPI["add"]>[0]): Pick<StreamAPI, "info" | "add"> {
    return {
      info: (name) => streams.info(name),
      async add(config) {
        await streams.add(by);
        return streams.add(config);
      },
    };
  }

  test("is taken as it is where another process made it meanwhile, and the server refuses this one's", async () => {
    await ensureStream(overtaken({ name: STREAM, subjects: ["reeve.>"], max_bytes: 1_000_000 }));
    expect((await streams.info(STREAM)).config.max_bytes).toBe(1_000_000);
  });

  test("is refused, with its name and subjects, where another stream has those", async () => {
    const refused = ensureStream(overtaken({ name: "OTHER", subjects: ["reeve.test"] }));
    await expect(refused).rejects.toThrow(
      'NATS does not make the stream REEVE_EVENTS for "reeve.>": subjects overlap with an existing stream',
    );
    await expect(streams.info(STREAM)).rejects.toThrow("stream not found");
  });
});
