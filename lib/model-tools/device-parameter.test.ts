import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { takeDevice, withDeviceParameter } from "./device-parameter.ts";

const devices = [
  { id: "dev-1", name: "laptop" },
  { id: "dev-2", name: "server" },
];
const schema: JsonObject = {
  type: "object",
  additionalProperties: false,
  properties: { path: { type: "string" } },
  required: ["path"],
};

describe("the device parameter", () => {
  it("is added as a required choice, and the rest of the schema stays", () => {
    const widened = withDeviceParameter(schema, devices);
    expect(widened).toMatchObject({ additionalProperties: false, required: ["device", "path"] });
    expect(widened.properties).toEqual({
      device: { type: "string", enum: ["laptop", "server"], description: "The device to run on. Required." },
      path: { type: "string" },
    });
    expect(schema.required).toEqual(["path"]);
  });

  it("is added to a schema that has nothing", () => {
    expect(withDeviceParameter({}, devices)).toMatchObject({ type: "object", required: ["device"] });
  });

  it("is taken out again before the call", () => {
    expect(takeDevice(schema, devices, { device: "server", path: "/etc" })).toEqual({
      deviceId: "dev-2",
      input: { path: "/etc" },
    });
  });

  it("gets another name where the tool has a parameter of that name", () => {
    const own: JsonObject = { type: "object", properties: { device: { type: "string" } }, required: ["device"] };
    expect(withDeviceParameter(own, devices).required).toEqual(["reeve_device", "device"]);
    expect(takeDevice(own, devices, { reeve_device: "laptop", device: "/dev/sda" })).toEqual({
      deviceId: "dev-1",
      input: { device: "/dev/sda" },
    });
  });

  it.each([
    [{ path: "/" }, ErrorReason.DEVICE_REQUIRED],
    [{ device: "", path: "/" }, ErrorReason.DEVICE_REQUIRED],
    [{ device: "dev-1", path: "/" }, ErrorReason.UNKNOWN_DEVICE],
    [{ device: { $ne: 1 }, path: "/" }, ErrorReason.UNKNOWN_DEVICE],
  ])("refuses %j and names the devices", (input: JsonObject, reason) => {
    let thrown: unknown;
    try {
      takeDevice(schema, devices, input);
    } catch (error: unknown) {
      thrown = error;
    }
    expect(faultDetail(thrown)).toMatchObject({ reason, metadata: { available: "laptop, server" } });
  });
});
