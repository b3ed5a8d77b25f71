import { describe, expect, test } from "vitest";
import { parseHosts } from "./host-list.ts";
import { isPublicAddress } from "./public-address.ts";

describe("addresses", () => {
  test.each(["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450:4001:830::200e"])(
    "%s is public",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  test.each([
    ["127.0.0.1"],
    ["127.8.9.1"],
    ["0.0.0.0"],
    ["10.0.0.1"],
    ["100.64.0.1"],
    ["169.254.169.254"],
    ["172.16.0.1"],
    ["172.31.255.255"],
    ["192.168.1.1"],
    ["198.18.0.1"],
    ["224.0.0.1"],
    ["255.255.255.255"],
    ["::"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["::ffff:8.8.8.8"],
    ["64:ff9b::a00:1"],
    ["fe80::1"],
    ["fe80::1%eth0"],
    ["2606:4700::1%1"],
    ["fc00::1"],
    ["fd00:ec2::254"],
    ["ff02::1"],
    ["2001::1"],
    ["2001:db8::1"],
    ["2002:7f00:1::"],
    ["not an address"],
  ])("%s is not public", (address) => expect(isPublicAddress(address)).toBe(false));
});

describe("a list of hosts", () => {
  const list = parseHosts([
    "api.example.com",
    "*.example.org",
    "git.example.com:8443",
    "10.1.2.3",
    "192.168.0.0/16",
    "[fd00::1]:8080",
  ]);

  test.each([
    ["api.example.com", 443],
    ["API.Example.COM", 443],
    ["api.example.com.", 443],
    ["a.example.org", 443],
    ["a.b.example.org", 443],
    ["git.example.com", 8443],
    ["10.1.2.3", 443],
    ["192.168.7.7", 443],
    ["[fd00::1]", 8080],
  ])("grants %s at %i", (host, port) => expect(list.grants(host, port, 443)).toBe(true));

  test.each([
    ["example.com", 443],
    ["evil-api.example.com", 443],
    ["api.example.com.evil.net", 443],
    ["api.example.com", 8443],
    ["git.example.com", 443],
    ["example.org", 443],
    ["aexample.org", 443],
    [".example.org", 443],
    ["10.1.2.4", 443],
    ["10.1.2.3", 22],
    ["192.168.7.7", 8443],
    ["fd00::1", 443],
    ["", 443],
  ])("does not grant %s at %i", (host, port) => expect(list.grants(host, port, 443)).toBe(false));

  test("lets connections go to public addresses and to those that it names", () => {
    const asked = [
      "1.1.1.1",
      "10.1.2.3",
      "192.168.7.7",
      "fd00::1",
      "10.1.2.4",
      "127.0.0.1",
      "fe80::1",
      "::ffff:10.1.2.3",
    ];
    expect(asked.map((address) => list.mayConnect(address))).toEqual([
      true,
      true,
      true,
      true,
      false,
      false,
      false,
      true,
    ]);
  });

  test("grants nothing where it is empty", () => {
    const empty = parseHosts([]);
    expect([empty.hasHosts, empty.grants("api.example.com", 443, 443)]).toEqual([false, false]);
  });

  test.each([
    "",
    "http://a.example",
    "a b",
    "*",
    "*.",
    "a.*.b",
    "a:0",
    "a:70000",
    "10.0.0.0/33",
    "1.2.3",
    "0x7f",
    "a/b",
  ])("does not take %j for a host", (entry) => expect(() => parseHosts([entry])).toThrow(/is no host/));
});
