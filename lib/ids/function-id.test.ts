import { expect, it } from "vitest";
import { functionId } from "./function-id.ts";

it.each([
  ["fs.read", "capability_read_ts_fs"],
  ["docker.container.list", "capability_container_list_ts_docker"],
  ["ping", "capability_ping_ts_ping"],
])("makes the function id of %s", (capability, id) => {
  expect(functionId([capability, "another.one"])).toBe(id);
});
