import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkMode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { offeredTools } from "../tools/offered.ts";
import { createDeviceIndex, createDirectory, resolveTool } from "./directory.ts";
import type { KnownDevice } from "./known-device.ts";

function device(name: string, unavailable: { tool: string; why: string }[] = []): KnownDevice {
  const capabilities = ["fs.read", "shell.exec", "docker.container.list"];
  const manifest = create(ManifestSchema, { name, deviceId: `dev-${name}`, capabilities, unavailable });
  const { tools } = offeredTools(manifest, builtInTools(), []);
  const receipts = { verify: () => ({ ok: false, kind: "malformed" }) as const };
  return {
    id: manifest.deviceId,
    name,
    manifest,
    manifestDigest: "",
    tools,
    labels: {},
    unavailable,
    receipts,
    online: true,
    lastSeenMs: 0,
    linkMode: LinkMode.DIRECT,
    replicaId: "rep-1",
  };
}

function refused(run: () => unknown) {
  try {
    run();
  } catch (error: unknown) {
    return { reason: reasonOf(error), ...faultDetail(error)?.metadata };
  }
  return undefined;
}

test("finds a device by name, by id, as this one, and as the only one", () => {
  const directory = createDeviceIndex("laptop");
  directory.put(device("laptop"));
  for (const wanted of ["laptop", "dev-laptop", "this", ""]) expect(directory.resolve(wanted).name).toBe("laptop");
});

test("asks which device where there are several", () => {
  const directory = createDeviceIndex();
  directory.put(device("nas"));
  directory.put(device("laptop"));
  expect(refused(() => directory.resolve(""))).toMatchObject({
    reason: ErrorReason.DEVICE_REQUIRED,
    available: "laptop, nas",
  });
});

test("says which devices there are when the wanted one is not", () => {
  const directory = createDeviceIndex();
  directory.put(device("nas"));
  expect(refused(() => directory.resolve("\u001b[31mx"))).toMatchObject({
    reason: ErrorReason.UNKNOWN_DEVICE,
    available: "nas",
  });
});

test("names some of many devices and says how many more there are, so that the refusal fits into a header", () => {
  const directory = createDeviceIndex();
  const nas = device("nas");
  for (let n = 1; n <= 1000; n++) directory.put({ ...nas, name: `machine-${n}`, id: `dev-${n}` });
  for (const wanted of ["", "nowhere"]) {
    const { available = "" } = refused(() => directory.resolve(wanted)) as { available?: string };
    expect(available).toMatch(/^machine-1, .*machine-9 and 980 more$/);
    expect(available.split(", ")).toHaveLength(20);
  }
});

test("distinguishes an unknown tool from one that this device cannot offer", () => {
  const nas = device("nas", [{ tool: "docker.list", why: "docker: no engine answers" }]);
  expect(refused(() => resolveTool(nas, "fs.erase"))).toMatchObject({
    reason: ErrorReason.UNKNOWN_TOOL,
    available: "exec, fs.read",
  });
  expect(refused(() => resolveTool(nas, "docker.list"))).toMatchObject({
    reason: ErrorReason.NOT_AVAILABLE,
    tool: "docker.list",
  });
  expect(resolveTool(nas, "fs.read").spec.name).toBe("fs.read");
});

test("looks at what other replicas know where a device is not known here, or seems to be offline", async () => {
  const box = { ...device("box"), online: false };
  let looks = 0;
  const index = createDeviceIndex();
  const directory = createDirectory(index, async () => {
    looks++;
    directory.put({ ...box, online: true });
  });
  directory.put(device("nas"));
  expect((await directory.find("nas")).name).toBe("nas");
  expect(looks).toBe(0);
  expect(await directory.find("box")).toMatchObject({ name: "box", online: true });
  directory.put(box);
  expect(await directory.find("box")).toMatchObject({ online: true });
  expect(looks).toBe(2);
  await expect(directory.find("nowhere")).rejects.toThrow('no device "nowhere"');
});

test("forgets a device with its name, and a name's old device when another one has it", () => {
  const directory = createDeviceIndex();
  const old = { ...device("nas"), id: "dev-old" };
  directory.put(old);
  directory.put({ ...device("nas"), id: "dev-new" });
  expect(directory.byId("dev-old")).toBeUndefined();
  directory.remove("nas");
  expect(directory.byId("dev-new")).toBeUndefined();
  expect(directory.all()).toEqual([]);
});

test.each(["", "laptop"])("where no device is known, '%s' is refused with what to do", async (wanted) => {
  const found = createDirectory(createDeviceIndex(), async () => undefined).find(wanted);
  await expect(found).rejects.toThrow(/no device is known yet.*join-token.*REEVE_DIAL_DEVICES/);
});
