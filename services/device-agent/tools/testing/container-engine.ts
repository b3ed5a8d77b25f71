import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/** What the engine was asked to run. */
export interface ExecAsked {
  Cmd: string[];
  User: string;
  WorkingDir: string;
}

/** A container engine on a Unix socket. */
export interface TestEngine extends AsyncDisposable {
  readonly socket: string;
  /** The bodies of the exec requests, in order. */
  readonly asked: ExecAsked[];
  /** The queries of the log requests, in order. */
  readonly logQueries: URLSearchParams[];
}

const CONTAINER = {
  Id: "0123456789abcdef".repeat(4),
  Name: "/web",
  Image: `sha256:${"ab".repeat(32)}`,
  State: { Running: true, Status: "running", StartedAt: "2023-11-14T22:13:20Z" },
  Config: { Tty: false, Image: "nginx:1" },
};

const LISTED = {
  Id: CONTAINER.Id,
  Names: ["/web"],
  Image: "nginx:1",
  State: "running",
  Status: "Up 3 hours",
  Created: 1_700_000_000,
  Ports: [{ IP: "0.0.0.0", PrivatePort: 80, PublicPort: 8080, Type: "tcp" }],
  Labels: {},
};

/**
 * Starts as much of the Docker Engine API as the docker client needs for ps, inspect, exec and logs: two running
 * containers that are the same but for the name, and one that is stopped.
 */
export async function startTestEngine(socket: string): Promise<TestEngine> {
  const asked: ExecAsked[] = [];
  const logQueries: URLSearchParams[] = [];
  const server = createServer((request, response) => void answer(request, response, asked, logQueries));
  server.on("upgrade", (_, stream: Duplex) => runExec(stream));
  server.listen(socket);
  await once(server, "listening");
  return { socket, asked, logQueries, [Symbol.asyncDispose]: () => close(server) };
}

async function answer(request: IncomingMessage, response: ServerResponse, asked: ExecAsked[], logs: URLSearchParams[]) {
  const url = new URL(request.url ?? "/", "http://engine");
  const path = url.pathname.replace(/^\/v[\d.]+/, "");
  response.setHeader("Api-Version", "1.47");
  const json = (value: unknown, status = 200): void => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  };
  const [, kind, name = "", verb] = path.split("/");
  if (path === "/_ping") response.end("OK");
  else if (path === "/containers/json")
    json(url.searchParams.get("all") === "1" ? [LISTED, { ...LISTED, Names: ["/b"] }] : [LISTED]);
  else if (kind === "exec" && verb === "json") json({ ID: name, Running: false, ExitCode: 7, Pid: 1 });
  else if (kind !== "containers" || !["web", "stopped", CONTAINER.Id].includes(name))
    json({ message: `No such container: ${name}` }, 404);
  else if (verb === "json")
    json(
      name === "stopped"
        ? { ...CONTAINER, State: { ...CONTAINER.State, Running: false, Status: "exited" } }
        : CONTAINER,
    );
  else if (verb === "exec") {
    asked.push(JSON.parse(await bodyOf(request)));
    json({ Id: "e1" }, 201);
  } else {
    logs.push(url.searchParams);
    response.end(Buffer.concat([frame(1, "2023-11-14T22:13:20Z line\n"), frame(2, "2023-11-14T22:13:21Z bad\n")]));
  }
}

function runExec(stream: Duplex): void {
  stream.write(
    "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.multiplexed-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n",
  );
  stream.end(Buffer.concat([frame(1, "out\n"), frame(2, "err\n")]));
}

/** One frame of the engine's multiplexed stream: the stream's number, three zeros, the length, the bytes. */
function frame(stream: number, text: string): Buffer {
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
