import { connect } from "node:net";

const DEFAULT_PORT = 4222;

/**
 * Whether any of the servers says something to whoever connects, as every NATS server does first: what tells one that
 * refuses us without a word from one that is not there.
 */
export async function anyAnswers(servers: readonly string[], withinMs: number): Promise<boolean> {
  const answers = await Promise.all(servers.map((server) => answersAt(addressOf(server), withinMs)));
  return answers.includes(true);
}

/** Host and port of a server such as "nats://nats.example" or "[::1]:4222". */
export function addressOf(server: string): { host: string; port: number } {
  const url = URL.parse(server.includes("://") ? server : `nats://${server}`);
  return { host: url?.hostname.replace(/^\[|\]$/g, "") ?? "", port: Number(url?.port || DEFAULT_PORT) };
}

function answersAt(address: { host: string; port: number }, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address);
    const end = (answers: boolean) => () => {
      socket.destroy();
      resolve(answers);
    };
    socket.setTimeout(withinMs, end(false));
    socket.once("data", end(true)).on("error", end(false)).once("close", end(false));
  });
}
