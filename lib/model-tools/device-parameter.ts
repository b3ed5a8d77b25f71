import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";

/** A device as a model knows it. */
export interface DeviceName {
  id: string;
  /** Unique among the devices of a toolset. */
  name: string;
}

/** A call's input without the device, and the device. */
export interface RoutedInput {
  deviceId: string;
  input: JsonObject;
}

/**
 * Adds a required parameter that names the device, first in the schema. It is called "device", or "reeve_device"
 * where the tool has a parameter of that name itself.
 */
export function withDeviceParameter(schema: JsonObject, devices: readonly DeviceName[]): JsonObject {
  const parameter = parameterName(schema);
  const names = devices.map((device) => device.name);
  return {
    ...schema,
    type: "object",
    properties: {
      [parameter]: { type: "string", enum: names, description: "The device to run on. Required." },
      ...objectOf(schema.properties),
    },
    required: [parameter, ...listOf(schema.required)],
  };
}

/**
 * Takes the device out of what a model wrote for a schema that `withDeviceParameter` was applied to.
 *
 * @param schema the tool's own schema, without the parameter.
 *
 * Throws DEVICE_REQUIRED where none is named and UNKNOWN_DEVICE where it is none of `devices`; both name the devices.
 */
export function takeDevice(schema: JsonObject, devices: readonly DeviceName[], input: JsonObject): RoutedInput {
  const parameter = parameterName(schema);
  const { [parameter]: named, ...rest } = input;
  const available = devices.map((device) => device.name).join(", ");
  if (named === undefined || named === "") {
    throw fault(ErrorReason.DEVICE_REQUIRED, { available, field: parameter }, { message: `name one in ${parameter}` });
  }
  const device = devices.find((one) => one.name === named);
  if (device === undefined) {
    const message = `no device ${JSON.stringify(named)} has this tool`;
    throw fault(
      ErrorReason.UNKNOWN_DEVICE,
      { device: typeof named === "string" ? named : JSON.stringify(named), available },
      { message },
    );
  }
  return { deviceId: device.id, input: rest };
}

function parameterName(schema: JsonObject): string {
  return Object.hasOwn(objectOf(schema.properties), "device") ? "reeve_device" : "device";
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}
