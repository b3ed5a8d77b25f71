/** Folders in floors, the lowest first. A folder imports those of lower floors, and of its own where no circle arises. */
export type Floors = Readonly<Record<string, readonly string[]>>;

/** Every folder of the product that has folders below it, and how these stand on each other. */
export const AREAS: Readonly<Record<string, Floors>> = {
  lib: {
    ground: ["async", "config", "fault", "files", "hosts", "ids", "json", "log", "pages", "paths", "programs", "yaml"],
    data: ["auth", "events", "identity", "merkle", "secrets", "sign", "store"],
    wire: ["exchange", "link", "rpc-client", "server", "wire"],
    tools: ["command", "model-tools", "owner-manifest", "plugin", "sanitize", "tool", "toolschema"],
    "audit-verify": ["audit-verify"],
    run: ["run"],
  },
  "services/registry": {
    ground: ["policy-client", "tables", "tools"],
    cluster: ["cluster"],
    devices: ["devices"],
    calls: ["calls"],
    "around calls": ["enrollment", "fan-out", "queue"],
    faces: ["faces"],
    wiring: ["wiring"],
  },
  "services/policy": {
    facts: ["facts"],
    rules: ["rules"],
    evaluate: ["evaluate"],
    storage: ["storage"],
    audit: ["audit"],
    keys: ["keys"],
    grants: ["grants"],
    decisions: ["decisions"],
    approvals: ["approvals"],
  },
  "services/device-agent": {
    ground: ["executor", "hosts", "ledger", "manifest", "roots", "secrets", "undo"],
    grants: ["grants", "identity"],
    providers: ["providers", "tools"],
    execute: ["execute"],
    session: ["attach", "link"],
  },
  "services/agent": {
    toolbox: ["toolbox"],
    providers: ["providers", "scripted-model"],
    loop: ["loop"],
  },
  cli: {
    ground: ["errors", "flags", "print"],
    calls: ["approval", "call"],
    "fan-out": ["fan-out"],
    nouns: [
      "audit",
      "chat",
      "config",
      "device",
      "key",
      "login",
      "manifest",
      "operator",
      "plugin",
      "policy",
      "secret",
      "service-ca",
      "shell",
      "stack",
    ],
    tours: ["demo", "doctor"],
    commands: ["commands"],
  },
};
