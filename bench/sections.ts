import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerProcess, startServer } from "./measure/server-process.ts";
import { gatewaySubjects } from "./peers/gateways.ts";
import { installPeers } from "./peers/packages.ts";
import { connectSubject, mcpSubjects, plainHttpSubjects, spawnSubject } from "./subjects/bare.ts";
import { commandSubjects } from "./subjects/commands.ts";
import { eventSubjects } from "./subjects/events.ts";
import { governedSandboxSubjects, governedSubjects } from "./subjects/governed.ts";
import { mcpFaceSubjects, sdkV2Subject } from "./subjects/mcp.ts";
import { pathSubjects } from "./subjects/paths.ts";
import { rawSubjects } from "./subjects/raw.ts";
import { sandboxSubjects } from "./subjects/sandboxed.ts";
import { storeSubjects } from "./subjects/stores.ts";
import type { Section } from "./subjects/subject.ts";

/** Everything that is measured as calls. */
export const SECTIONS: readonly Section[] = [
  {
    name: "calls",
    title: "a governed call against bare ones, everything of `reeve up` in one process",
    async open(parts) {
      const [mcp, governed] = [await server(parts, "mcp"), await server(parts, "governed")];
      return [
        ...(await mcpSubjects(mcp)),
        ...governedSubjects(governed),
        ...(await rawSubjects(mcp, governed)),
        ...plainHttpSubjects(await server(parts, "plain-http")),
        connectSubject(await server(parts, "connect")),
        spawnSubject(),
      ];
    },
  },
  {
    name: "mcp",
    title: "a governed tool over MCP against a bare MCP server by the same client",
    open: async (parts) =>
      mcpFaceSubjects(await server(parts, "mcp"), await server(parts, "mcp-v2"), await server(parts, "governed")),
  },
  {
    name: "gateways",
    title: "a governed call against the MCP SDK's version 2 and MCP gateways (installed from npm when first asked for)",
    async open(parts, onStep) {
      const commands = await installPeers(onStep).catch((error: unknown) => {
        process.stderr.write(`\ngateways: not measured, because npm could not install them: ${String(error)}\n`);
      });
      if (commands === undefined) return [];
      const folder = await mkdtemp(join(tmpdir(), "reeve-gateways-"));
      parts.defer(() => rm(folder, { recursive: true, force: true }));
      const gateways = await gatewaySubjects(parts, commands, folder);
      const [mcp] = await mcpSubjects(await server(parts, "mcp"));
      const sdkV2 = await sdkV2Subject(await server(parts, "mcp-v2"));
      const against = [...gateways, sdkV2].map(({ name }) => name);
      const [unary, stream] = governedSubjects(await server(parts, "governed"));
      const governed = [unary, stream].filter((one) => one !== undefined).map((one) => ({ ...one, against }));
      return [...(mcp === undefined ? [] : [mcp]), sdkV2, ...gateways, ...governed];
    },
  },
  {
    name: "paths",
    title: "the ways to a device with two registries, PostgreSQL and NATS",
    open: async (parts) => {
      const [mcp] = await mcpSubjects(await server(parts, "mcp"));
      return [...(mcp === undefined ? [] : [mcp]), ...(await pathSubjects(parts))];
    },
  },
  {
    name: "sandbox",
    title: "a program in the sandbox against one outside of it and against bare spawn",
    async open(parts) {
      const governed = governedSandboxSubjects(await server(parts, "governed"));
      return [{ ...spawnSubject(), against: [] }, ...(await sandboxSubjects(parts)), ...governed];
    },
  },
  {
    name: "commands",
    title: "the analysis of shell text alone, of the rules' examples by its verdict",
    open: async () => commandSubjects(),
  },
  { name: "stores", title: "SQLite against PostgreSQL", open: storeSubjects },
  { name: "events", title: "events inside the process against NATS: from publish to the handler", open: eventSubjects },
];

async function server(parts: AsyncDisposableStack, name: string): Promise<ServerProcess> {
  return parts.adopt(await startServer(name), (one) => one.stop());
}
