import type { NetworkInterfaceInfo } from "node:os";
import { expect, test } from "vitest";
import { advertisedUrl } from "./advertised-url.ts";

const at = (address: string, internal = false) =>
  ({ address, internal, family: address.includes(":") ? "IPv6" : "IPv4" }) as NetworkInterfaceInfo;
const lo = [at("127.0.0.1", true), at("::1", true)];

test.each([
  ["https://reeve-a.example:7400/", "https://0.0.0.0:7400", {}, "https://reeve-a.example:7400"],
  [undefined, "https://10.1.2.3:7400", { lo }, "https://10.1.2.3:7400"],
  [undefined, "https://0.0.0.0:7400", { lo, eth0: [at("fe80::1"), at("10.1.2.3")] }, "https://10.1.2.3:7400"],
  [undefined, "http://[::]:7400", { lo, eth0: [at("fe80::1"), at("fd00::7")] }, "http://[fd00::7]:7400"],
  [undefined, "http://0.0.0.0:7400", { lo }, "http://127.0.0.1:7400"],
])("%s, listening at %s, is reached at %4$s", (configured, url, interfaces, wanted) => {
  expect(advertisedUrl(configured, url, interfaces)).toBe(wanted);
});
