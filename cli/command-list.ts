import type { Command } from "commander";
import type { CommandContext } from "./command-context.ts";

/** Adds a command to the program. */
export type Register = (program: Command, context: CommandContext) => void;

/** A command: what `reeve --help` says of it, and the way to the rest. */
export interface CommandEntry {
  name: string;
  summary: string;
  load(): Promise<Register>;
}

/** Every command, in the order of `reeve --help`. */
export const commandList: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "run everything on this machine",
    load: async () => (await import("./commands/up.ts")).registerUp,
  },
  {
    name: "demo",
    summary: "watch an agent do a small job through the gate, from start to proof",
    load: async () => (await import("./commands/demo.ts")).registerDemo,
  },
  {
    name: "tools",
    summary: "list the tools that can be called on a device",
    load: async () => (await import("./commands/tools.ts")).registerTools,
  },
  {
    name: "call",
    summary: "call a tool on a device",
    load: async () => (await import("./commands/call.ts")).registerCall,
  },
  {
    name: "chat",
    summary: "let a model use the tools",
    load: async () => (await import("./commands/chat.ts")).registerChat,
  },
  {
    name: "devices",
    summary: "list the devices",
    load: async () => (await import("./commands/devices.ts")).registerDevices,
  },
  {
    name: "device",
    summary: "make machines devices, and keep devices out",
    load: async () => (await import("./commands/device.ts")).registerDevice,
  },
  {
    name: "calls",
    summary: "list, show, watch and cancel calls",
    load: async () => (await import("./commands/calls.ts")).registerCalls,
  },
  {
    name: "approvals",
    summary: "list, show and decide held calls",
    load: async () => (await import("./commands/approvals.ts")).registerApprovals,
  },
  {
    name: "audit",
    summary: "list, verify and prove the record",
    load: async () => (await import("./commands/audit.ts")).registerAudit,
  },
  {
    name: "keys",
    summary: "list and rotate the keys that sign",
    load: async () => (await import("./commands/keys.ts")).registerKeys,
  },
  {
    name: "policy",
    summary: "check, explain and show policy; without a subcommand: run the policy service",
    load: async () => (await import("./commands/policy.ts")).registerPolicy,
  },
  {
    name: "registry",
    summary: "run the registry service",
    load: async () => (await import("./commands/services.ts")).registerServices,
  },
  {
    name: "device-agent",
    summary: "run the device agent",
    load: async () => (await import("./commands/services.ts")).registerServices,
  },
  {
    name: "migrate",
    summary: "bring a service's database up to date",
    load: async () => (await import("./commands/migrate.ts")).registerMigrate,
  },
  {
    name: "tokens",
    summary: "create, list and revoke the tokens of this machine's control plane",
    load: async () => (await import("./commands/tokens.ts")).registerTokens,
  },
  {
    name: "operator",
    summary: "keep the operator's token of this machine under a passphrase",
    load: async () => (await import("./commands/operator.ts")).registerOperator,
  },
  {
    name: "certs",
    summary: "make and show the certificates of the control plane",
    load: async () => (await import("./commands/certs.ts")).registerCerts,
  },
  {
    name: "login",
    summary: "log in at an OpenID Connect provider",
    load: async () => (await import("./commands/login.ts")).registerLogin,
  },
  {
    name: "logout",
    summary: "forget the login",
    load: async () => (await import("./commands/login.ts")).registerLogin,
  },
  {
    name: "doctor",
    summary: "check that everything works, and say what to do",
    load: async () => (await import("./commands/doctor.ts")).registerDoctor,
  },
];
