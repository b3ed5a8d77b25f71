import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { AuthorityService } from "../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { fault, reasonOf } from "../../lib/fault/fault.ts";
import { listAuthorities } from "./authorities.ts";

it("lists the authorities of a registry that enrolls devices", async () => {
  const transport = createRouterTransport(({ service }) => {
    service(AuthorityService, { listAuthorities: () => ({ authorities: [{ id: "a", signs: true }] }) });
  });
  expect(await listAuthorities({ authorities: createClient(AuthorityService, transport) })).toMatchObject([
    { id: "a" },
  ]);
});

it("knows of none where the registry enrolls no devices", async () => {
  const transport = createRouterTransport(() => {});
  expect(await listAuthorities({ authorities: createClient(AuthorityService, transport) })).toBeUndefined();
});

it("passes on why it may not ask", async () => {
  const transport = createRouterTransport(({ service }) => {
    service(AuthorityService, {
      listAuthorities() {
        throw fault(ErrorReason.ROLE_REQUIRED, {}, { message: "operators only" });
      },
    });
  });
  const error = await listAuthorities({ authorities: createClient(AuthorityService, transport) }).catch((e) => e);
  expect(reasonOf(error)).toBe(ErrorReason.ROLE_REQUIRED);
});
