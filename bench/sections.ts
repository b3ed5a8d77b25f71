import { type ServerProcess, startServer } from "./measure/server-process.ts";
import { connectSubject, mcpSubjects, plainHttpSubjects, spawnSubject } from "./subjects/bare.ts";
import { eventSubjects } from "./subjects/events.ts";
import { governedSubjects } from "./subjects/governed.ts";
import { pathSubjects } from "./subjects/paths.ts";
import { storeSubjects } from "./subjects/stores.ts";
import type { Section } from "./subjects/subject.ts";

/** Everything that is measured as calls. */
export const SECTIONS: readonly Section[] = [
  {
    name: "calls",
    title: "a governed call against bare ones, everything of `reeve up` in one process",
    open: async (parts) => [
      ...(await mcpSubjects(await server(parts, "mcp"))),
      ...governedSubjects(await server(parts, "governed")),
      ...plainHttpSubjects(await server(parts, "plain-http")),
      connectSubject(await server(parts, "connect")),
      spawnSubject(),
    ],
  },
  {
    name: "paths",
    title: "the ways to a device with two registries, PostgreSQL and NATS",
    open: async (parts) => {
      const [mcp] = await mcpSubjects(await server(parts, "mcp"));
      return [...(mcp === undefined ? [] : [mcp]), ...(await pathSubjects(parts))];
    },
  },
  { name: "stores", title: "SQLite against PostgreSQL", open: storeSubjects },
  { name: "events", title: "events inside the process against NATS: from publish to the handler", open: eventSubjects },
];

async function server(parts: AsyncDisposableStack, name: string): Promise<ServerProcess> {
  return parts.adopt(await startServer(name), (one) => one.stop());
}
