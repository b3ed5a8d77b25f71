import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { UsageError } from "../errors/usage-error.ts";
import { RESTATE_VERSION, restateProgram } from "./restate-program.ts";

it("finds the server that is installed", () => {
  expect(restateProgram()).toMatch(/restate-server$/);
});

it("says how to get the server where it is missing, in the version that is tested", () => {
  const { devDependencies } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(RESTATE_VERSION).toBe(devDependencies["@restatedev/restate-server"]);
  let refusal: unknown;
  try {
    restateProgram("/nowhere/cli.ts");
  } catch (error: unknown) {
    refusal = error;
  }
  if (!(refusal instanceof UsageError)) throw new Error("the program was found nowhere");
  expect(refusal.message).toBe("--durable needs a Restate server, which is not installed");
  const [install, elsewhere] = refusal.hints;
  expect(install).toContain(`npm install @restatedev/restate-server@${RESTATE_VERSION} `);
  expect(install).toContain(`@restatedev/restate-server-${process.platform}-${process.arch}`);
  expect(elsewhere).toContain("REEVE_RESTATE_INGRESS_URL");
});
