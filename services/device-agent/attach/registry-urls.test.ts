import { expect, test } from "vitest";
import { parseRegistryUrls } from "./registry-urls.ts";

test("reads a list of addresses", () => {
  expect(parseRegistryUrls("https://a.example:7400/, https://b.example", "REEVE_DEVICE_REGISTRY_URL")).toEqual([
    "https://a.example:7400",
    "https://b.example",
  ]);
  expect(parseRegistryUrls("", "REEVE_DEVICE_REGISTRY_URL")).toEqual([]);
});

test.each(["http://127.0.0.1:7400", "127.0.0.1:7400", "https://a.example,nonsense"])("refuses %s", (text) => {
  expect(() => parseRegistryUrls(text, "REEVE_DEVICE_REGISTRY_URL")).toThrow(
    "REEVE_DEVICE_REGISTRY_URL must list https addresses",
  );
});
