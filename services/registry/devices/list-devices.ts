import { create } from "@bufbuild/protobuf";
import {
  type ListDevicesRequest,
  type ListDevicesResponse,
  ListDevicesResponseSchema,
} from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { pageOf } from "../pages.ts";
import type { Directory } from "./directory.ts";
import { toDevice } from "./linked-device.ts";

/** The devices, by name, a page at a time. */
export function listDevices(directory: Directory, request: ListDevicesRequest): ListDevicesResponse {
  const { page, nextPageToken } = pageOf(directory.all(), request.pageSize, request.pageToken, 100);
  return create(ListDevicesResponseSchema, { devices: page.map(toDevice), nextPageToken });
}
