/** Folders in floors, the lowest first. A folder imports those of lower floors, and of its own where no circle arises. */
export type Floors = Readonly<Record<string, readonly string[]>>;

/** Every folder of the product that has folders below it, and how these stand on each other. */
export const AREAS: Readonly<Record<string, Floors>> = {
  lib: {
    ground: ["async", "config", "fault", "files", "ids", "json", "log", "pages", "paths", "programs"],
    data: ["auth", "events", "identity", "merkle", "sign", "store"],
    wire: ["exchange", "link", "rpc-client", "server", "wire"],
    tools: ["arguments", "blocklist", "command", "model-tools", "sanitize", "tool", "toolschema"],
    "audit-verify": ["audit-verify"],
    run: ["run"],
  },
  "services/registry": {
    tools: ["policy", "policy-client", "tools"],
    cluster: ["cluster"],
    devices: ["devices"],
    calls: ["calls"],
    "around calls": ["enrollment", "fan-out", "fanout", "queue"],
    faces: ["faces", "http", "typed"],
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
    ground: ["executor", "ledger", "manifest", "roots"],
    grants: ["grants", "identity"],
    providers: ["announced", "providers", "tools"],
    execute: ["execute"],
    session: ["attach", "link", "session"],
  },
  "services/agent": {
    tools: ["tools"],
    toolbox: ["toolbox"],
    providers: ["providers"],
    loop: ["loop", "scripted-model"],
  },
  cli: {
    ground: ["errors", "flags", "print"],
    calls: ["approvals", "call", "fan-out", "queue"],
    nouns: ["audit", "certs", "chat", "device", "keys", "login", "operator", "policy", "stack"],
    tours: ["demo", "doctor"],
    commands: ["commands"],
  },
};
