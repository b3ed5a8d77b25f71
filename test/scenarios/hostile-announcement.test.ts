import { create } from "@bufbuild/protobuf";
import { beforeAll, expect, test } from "vitest";
import type { RegistryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createLogger } from "../../lib/log/log.ts";
import {
  denseMessages,
  HOSTILE_SERVICE,
  hostileDescriptors,
  manyEnumFields,
  smallDenseMessages,
} from "../../testkit/hostile-services.ts";
import { OPERATOR, startInMemoryPlane } from "../../testkit/in-memory-plane.ts";
import { lyingDevice } from "../../testkit/lying-device.ts";

let announced: AnnouncedTools[];
let logged: string;
const logger = createLogger({
  service: "test",
  level: "warn",
  destination: {
    write: (line) => {
      logged += line;
    },
  },
});

beforeAll(async () => {
  logged = "";
  const sources = { enums: manyEnumFields(500, 2000, 8), dense: denseMessages(), small: smallDenseMessages() };
  announced = await Promise.all(
    Object.entries(sources).map(async ([name, source]) => {
      const descriptorSet = await hostileDescriptors(source);
      return create(AnnouncedToolsSchema, {
        name,
        definition: { case: "service", value: { service: HOSTILE_SERVICE, descriptorSet } },
      });
    }),
  );
  announced.push(
    create(AnnouncedToolsSchema, {
      name: "huge",
      definition: {
        case: "service",
        value: { service: HOSTILE_SERVICE, descriptorSet: new Uint8Array(1024 * 1024 + 1) },
      },
    }),
  );
});
const REFUSED = [
  ...Array.from({ length: 8 }, (_, at) => ({
    tool: `enums:r${at}`,
    why: "over the limit tool_enum_values of 10000",
  })),
  { tool: "dense:r0", why: "over the limit tool_fields of 2000" },
  { tool: "small:r0", why: "over the limit tool_links of 100000" },
  { tool: "huge", why: "the service is not taken: over the limit descriptor_bytes of 1048576" },
];

async function expectRefused(client: RegistryClient): Promise<void> {
  const { devices } = await client.listDevices({});
  expect(devices.map(({ name }) => name)).toEqual(["nas"]);
  expect(devices[0]?.tools).toEqual(["device.ping"]);
  expect(devices[0]?.unavailable).toMatchObject(REFUSED);
}

test("a device that announces what would take hours to read is linked without it, and so is one in the database", async () => {
  const plane = await startInMemoryPlane({ nas: lyingDevice("nas", announced) }, { logger });
  await using _closing = { [Symbol.asyncDispose]: plane.close };
  const first = plane.as(OPERATOR);
  await expectRefused(first);
  const { call } = await first.callTool({ tool: "device.ping", params: { text: "ping" } });
  expect(call?.status?.state).toBe(CallState.SUCCEEDED);
  const refused = await first.callTool({ tool: "dense:r0" }).catch(reasonOf);
  expect(refused).toBe(ErrorReason.NOT_AVAILABLE);
  expect(logged).toMatch(/"limit":"descriptor_bytes"/);

  // Without the device: what is in the database is read again.
  logged = "";
  await plane.restartRegistry({});
  await expectRefused(plane.as(OPERATOR));
  expect(logged).toMatch(/"service":"huge","device":"nas"/);
  expect(logged).toMatch(/"device":"nas","count":10,"tools":"enums:r0 \(over the limit /);
});
