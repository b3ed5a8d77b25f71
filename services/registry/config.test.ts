import { expect, test } from "vitest";
import { ConfigError } from "../../lib/config/config.ts";
import { approvalPage } from "./config.ts";

test("the approval's page is an address with a place for the approval", () => {
  const approvalUrl = "https://reeve.example/approvals/{approval}";
  expect(approvalPage(approvalUrl)).toEqual({ approvalUrl });
  expect(approvalPage(undefined)).toEqual({});
  for (const wrong of ["https://reeve.example/approvals", "javascript:{approval}", "/approvals/{approval}", ""])
    expect(() => approvalPage(wrong)).toThrow(ConfigError);
});
