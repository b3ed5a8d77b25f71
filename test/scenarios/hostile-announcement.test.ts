import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../lib/auth/principal.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createLogger } from "../../lib/log/log.ts";
import { inMemoryTransport } from "../../lib/server/in-memory.ts";
import { createPolicyService, type PolicyService } from "../../services/policy/service.ts";
import { deviceOver, policyOver } from "../../services/registry/dialers.ts";
import { createRegistry } from "../../services/registry/service.ts";
import {
  denseMessages,
  HOSTILE_SERVICE,
  hostileDescriptors,
  manyEnumFields,
  smallDenseMessages,
} from "../../testkit/hostile-services.ts";
import { lyingDevice } from "../../testkit/lying-device.ts";

const OPERATOR: Principal = { id: "owner", kind: "operator", roles: [Role.OPERATOR], name: "owner" };
const SERVICE: Principal = { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" };

let folder: string;
let policy: PolicyService;
let announced: AnnouncedTools[];
let logged: string;
const bus = createInProcessBus();
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
  folder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  logged = "";
  policy = await createPolicyService({ config: { stateDir: join(folder, "policy") }, logger, bus });
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
afterAll(async () => {
  await policy.close();
  await rm(folder, { recursive: true, force: true });
});

async function startRegistry(devices: [string, ReturnType<typeof deviceOver>][]) {
  const registry = await createRegistry({
    config: { stateDir: join(folder, "registry") },
    policy: policyOver(inMemoryTransport(policy.routes, { principal: SERVICE })),
    devices: new Map(devices),
    bus,
    logger,
  });
  const client = registryClient(inMemoryTransport(registry.routes, { principal: OPERATOR }));
  return { registry, client };
}

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
  const device = lyingDevice("nas", announced);
  const dialer = deviceOver(inMemoryTransport(device.routes, { principal: SERVICE }));
  const first = await startRegistry([["nas", dialer]]);
  await expectRefused(first.client);
  const { call } = await first.client.callTool({ tool: "device.ping", params: { text: "ping" } });
  expect(call?.status?.state).toBe(CallState.SUCCEEDED);
  const refused = await first.client.callTool({ tool: "dense:r0" }).catch(reasonOf);
  expect(refused).toBe(ErrorReason.NOT_AVAILABLE);
  expect(logged).toMatch(/"limit":"descriptor_bytes"/);
  await first.registry.close();

  // Without the device: what is in the database is read again.
  logged = "";
  const second = await startRegistry([]);
  await expectRefused(second.client);
  expect(logged).toMatch(/"service":"huge","device":"nas"/);
  expect(logged).toMatch(/"device":"nas","count":10,"tools":"enums:r0 \(over the limit /);
  await second.registry.close();
});
