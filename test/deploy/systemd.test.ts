import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { expect, test } from "vitest";
import { processContext } from "../../cli/command-context.ts";
import { registerServe } from "../../cli/commands/serve.ts";
import { readConfig } from "../../lib/config/config.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { deviceEnvironment } from "../../services/device-agent/config.ts";

const folder = join(repositoryRoot, "deploy", "systemd");
const unit = readFileSync(join(folder, "reeve-device-agent.service"), "utf8");

test("the unit starts a command that there is", () => {
  const [, command, part] = /^ExecStart=\S+\/reeve (\S+) (\S+)$/m.exec(unit) ?? [];
  const program = new Command();
  registerServe(program, processContext());
  const names = program.commands.flatMap((one) => one.commands.map((sub) => `${one.name()} ${sub.name()}`));
  expect(names).toContain(`${command} ${part}`);
});

test("the unit gives it no rights to gain more", () => {
  for (const line of ["NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict", "User=reeve"])
    expect(unit.split("\n")).toContain(line);
});

test("every folder that may be written to is one that may be missing, or the unit would not start", () => {
  const [, paths = ""] = /^ReadWritePaths=(.+)$/m.exec(unit) ?? [];
  expect(paths.split(" ").filter((path) => !path.startsWith("-/"))).toEqual([]);
});

test("the environment file sets what the code reads, to values that it takes", () => {
  const lines = readFileSync(join(folder, "device.env"), "utf8").split("\n");
  const set = Object.fromEntries(
    lines.filter((line) => /^[A-Z]/.test(line)).map((line) => line.split(/=(.*)/s).slice(0, 2)),
  );
  const known = Object.values(deviceEnvironment).map(({ name }) => name);
  expect(Object.keys(set).filter((name) => !known.includes(name as never))).toEqual([]);
  expect(() => readConfig(deviceEnvironment, set)).not.toThrow();
});
