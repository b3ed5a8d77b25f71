import { expect, test } from "vitest";
import { parseServices } from "./service-list.ts";

const parse = (services: string, descriptors = "") =>
  parseServices({ text: services, variable: "SERVICES" }, { text: descriptors, variable: "DESCRIPTORS" });

test("reads services with and without a file of descriptors", () => {
  expect(parse("printer=http://127.0.0.1:50051, scanner=https://scanner.local", "printer=/a/set.binpb")).toEqual([
    { name: "printer", url: "http://127.0.0.1:50051", descriptorFile: "/a/set.binpb" },
    { name: "scanner", url: "https://scanner.local", descriptorFile: undefined },
  ]);
  expect(parse("")).toEqual([]);
  expect(parse("a=http://localhost:1,b=http://[::1]:1").map(({ url }) => url)).toEqual([
    "http://localhost:1",
    "http://[::1]:1",
  ]);
});

test.each([
  ["cleartext beyond loopback", "printer=http://10.0.0.1:50051", "", /SERVICES: .*https/],
  ["no name", "http://127.0.0.1:1", "", /SERVICES: .*name/],
  ["a name with a colon", "a:b=http://127.0.0.1:1", "", /SERVICES: .*name/],
  ["a name twice", "a=http://127.0.0.1:1,a=http://127.0.0.1:2", "", /SERVICES: "a" is listed twice/],
  ["no address", "a=printer", "", /SERVICES: .*form/],
  ["an address with a path", "a=http://127.0.0.1:1/api", "", /SERVICES: .*form/],
  ["another protocol", "a=ftp://127.0.0.1:1", "", /SERVICES/],
  ["descriptors of nobody", "", "a=/set.binpb", /DESCRIPTORS: SERVICES lists no service "a"/],
])("refuses %s and names the variable", (_, services, descriptors, problem) => {
  expect(() => parse(services, descriptors)).toThrow(problem);
});
