import { expect, test } from "vitest";
import { parseDevices } from "./device-list.ts";

test("reads names and addresses", () => {
  expect([...parseDevices("nas=http://10.0.0.6:7402/, laptop=http://127.0.0.1:1")]).toEqual([
    ["nas", "http://10.0.0.6:7402"],
    ["laptop", "http://127.0.0.1:1"],
  ]);
});

test.each([["nas"], ["nas=ftp://x"], ["=http://x"], ["a=http://x,a=http://y"], ["a b=http://x"]])(
  "refuses %s and says which entry is wrong",
  (text) => {
    expect(() => parseDevices(text)).toThrow(/REEVE_DEVICES/);
  },
);
