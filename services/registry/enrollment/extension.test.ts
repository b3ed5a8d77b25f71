import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { KeyringSchema, SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { newestKeys, publicUrls } from "./extension.ts";

test.each([
  [{ publicUrl: "https://one.example/, https://two.example" }, ["https://one.example", "https://two.example"]],
  [{ host: "127.0.0.1", port: 7400 }, ["https://127.0.0.1:7400"]],
  [{ host: "::1", port: 7400 }, ["https://[::1]:7400"]],
  [{ host: "0.0.0.0", port: 7400 }, []],
  [{ host: "127.0.0.1", port: 0 }, []],
  [{}, []],
])("where devices reach the registry: %j", (settings, urls) => {
  expect(publicUrls(settings)).toEqual(urls);
});

test("devices pin the keys of the newest keyring, at its version", () => {
  const keyrings = [1, 2].map((version) => {
    const keyring = create(KeyringSchema, { version: BigInt(version), publicKeys: [new Uint8Array(32).fill(version)] });
    return create(SignedEnvelopeSchema, { payload: toBinary(KeyringSchema, keyring) });
  });
  expect(newestKeys(keyrings)).toEqual({ version: 2n, keys: [new Uint8Array(32).fill(2)] });
  expect(() => newestKeys([])).toThrow("no key that signs grants");
});
