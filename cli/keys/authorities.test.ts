import { createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { EnrolmentService } from "../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { fault, reasonOf } from "../../lib/fault/fault.ts";
import { listAuthorities } from "./authorities.ts";

it("lists the authorities of a registry that enrols devices", async () => {
  const transport = createRouterTransport(({ service }) => {
    service(EnrolmentService, { listAuthorities: () => ({ authorities: [{ id: "a", signs: true }] }) });
  });
  expect(await listAuthorities({ enrolment: createClient(EnrolmentService, transport) })).toMatchObject([{ id: "a" }]);
});

it("knows of none where the registry enrols no devices", async () => {
  const transport = createRouterTransport(() => {});
  expect(await listAuthorities({ enrolment: createClient(EnrolmentService, transport) })).toBeUndefined();
});

it("passes on why it may not ask", async () => {
  const transport = createRouterTransport(({ service }) => {
    service(EnrolmentService, {
      listAuthorities() {
        throw fault(ErrorReason.ROLE_REQUIRED, {}, { message: "operators only" });
      },
    });
  });
  const error = await listAuthorities({ enrolment: createClient(EnrolmentService, transport) }).catch((e) => e);
  expect(reasonOf(error)).toBe(ErrorReason.ROLE_REQUIRED);
});
