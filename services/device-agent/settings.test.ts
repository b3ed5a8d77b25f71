import { expect, test } from "vitest";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { parseKeys, parseLabels, parseList, parseRegistryUrls } from "./settings.ts";

test("reads labels", () => {
  expect(parseLabels("role=web, zone=a=b,", "LABELS")).toEqual({ role: "web", zone: "a=b" });
  expect(parseLabels("", "LABELS")).toEqual({});
});

test("names the label that has no key", () => {
  expect(() => parseLabels("role=web,=x", "LABELS")).toThrow('LABELS: "=x"');
});

test("reads lists without empty entries", () => {
  expect(parseList("/home: :/srv", ":")).toEqual(["/home", "/srv"]);
});

test("reads one grant key or more", () => {
  const keys = [generateSigningKey(), generateSigningKey()];
  const text = keys.map(({ raw }) => Buffer.from(raw).toString("base64")).join(",\n");
  expect(parseKeys(`${text}\n`, "KEY").map(({ keyId }) => keyId)).toEqual(keys.map(({ keyId }) => keyId));
});

test("refuses an invalid grant key, and a text without one", () => {
  expect(() => parseKeys("AAAA", "KEY")).toThrow('KEY: "AAAA" is no base64 of 32 bytes');
  expect(() => parseKeys(" \n", "KEY")).toThrow("KEY: holds no key");
});

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
