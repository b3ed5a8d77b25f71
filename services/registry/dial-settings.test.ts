import { expect, test } from "vitest";
import { parseDevices, parseUrls } from "./dial-settings.ts";

test("reads names and addresses", () => {
  expect([...parseDevices("nas=http://10.0.0.6:7402/, laptop=http://127.0.0.1:1")]).toEqual([
    ["nas", "http://10.0.0.6:7402"],
    ["laptop", "http://127.0.0.1:1"],
  ]);
});

test.each([
  ["nas"],
  ["nas=ftp://x"],
  ["=http://x"],
  ["a=http://x,a=http://y"],
  ["a b=http://x"],
  ["dev-0123456789abcdef=http://x"],
])("refuses %s and says which entry is wrong", (text) => {
  expect(() => parseDevices(text)).toThrow(/REEVE_DIAL_DEVICES/);
});

test("a variable of its own says where a device is, where it is set and not empty", () => {
  const text = "nas=http://10.0.0.6:7402,my-box=http://10.0.0.7:7402";
  const env = { REEVE_DIAL_MY_BOX_URL: "http://127.0.0.1:1/", REEVE_DIAL_NAS_URL: "" };
  expect([...parseDevices(text, env)]).toEqual([
    ["nas", "http://10.0.0.6:7402"],
    ["my-box", "http://127.0.0.1:1"],
  ]);
  expect(() => parseDevices(text, { REEVE_DIAL_NAS_URL: "nas" })).toThrow("REEVE_DIAL_NAS_URL");
});

test("addresses are listed with commas, and there is at least one", () => {
  expect(parseUrls("X", "http://a:1/, https://b:2")).toEqual(["http://a:1", "https://b:2"]);
  expect(() => parseUrls("X", " , ")).toThrow("X names no address");
  expect(() => parseUrls("X", "http://a:1,ftp://b")).toThrow("ftp://b");
});
