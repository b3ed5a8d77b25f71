import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { type Choice, chooseDevices } from "./choose.ts";

const DEVICES = ["web-1", "web-2", "web-3", "db-1"].map(
  (name) =>
    ({
      name,
      id: `dev-${name}`,
      labels: { role: name.split("-")[0] ?? "" },
      online: name !== "web-2",
    }) as unknown as KnownDevice,
);
const directory = {
  all: () => DEVICES,
  resolve(wanted: string) {
    const found = DEVICES.find(({ name, id }) => name === wanted || id === wanted);
    if (found === undefined) throw new Error(`no ${wanted}`);
    return found;
  },
};
const choose = (choice: Partial<Choice>) =>
  chooseDevices({ selector: "", devices: [], maxDevices: 0, ...choice }, directory).map(({ name }) => name);

function refusal(choice: Partial<Choice>) {
  try {
    return { chosen: choose(choice) };
  } catch (error: unknown) {
    return faultDetail(error);
  }
}

describe("choosing devices", () => {
  it("takes those with the labels, also the ones that are offline", () => {
    expect(choose({ selector: "role=web" })).toEqual(["web-1", "web-2", "web-3"]);
  });

  it("takes those that are named, in that order and each once", () => {
    expect(choose({ devices: ["db-1", "web-2", "dev-db-1"] })).toEqual(["db-1", "web-2"]);
  });

  it("refuses a selection that nothing matches, or too much", () => {
    expect(refusal({ selector: "role=cache" })).toMatchObject({
      reason: ErrorReason.SELECTION_REFUSED,
      metadata: { selector: "role=cache", matched: "0", max_devices: "100" },
    });
    expect(refusal({ selector: "role", maxDevices: 3 })).toMatchObject({
      reason: ErrorReason.SELECTION_REFUSED,
      metadata: { matched: "4", max_devices: "3" },
    });
    expect(choose({ selector: "role", maxDevices: 4 })).toHaveLength(4);
  });

  it.each([
    ["no way to choose", {}, "selector"],
    ["two ways to choose", { selector: "role=web", devices: ["db-1"] }, "devices"],
  ])("refuses %s, naming the field", (_, choice, field) => {
    expect(refusal(choice)).toMatchObject({ reason: ErrorReason.INVALID_INPUT, metadata: { field } });
  });
});
