import { expect, test } from "vitest";
import { checkNatsVersion } from "./nats-stream.ts";

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
