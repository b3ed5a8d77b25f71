import { isIP } from "node:net";
import { UsageError } from "./usage-error.ts";

/** How long whatever listens has to answer, in milliseconds. A Reeve on a busy machine may need more than a second. */
const ASK_TIMEOUT_MS = 5000;

/** What node says of a port that cannot be listened on. */
interface ListenError extends Error {
  code: string;
  address: string;
  port: number;
}

/**
 * Throws a start's error: for a port that is taken, or that this user may not take, a UsageError that says what listens
 * there and how to choose another; any other as it is.
 *
 * @param setting what chooses the port, such as "--port".
 */
export async function explainStart(error: unknown, setting: string): Promise<never> {
  if (!isListenError(error)) throw error;
  const at = `port ${error.port} of ${error.address}`;
  if (error.code === "EACCES") {
    throw new UsageError(`${at} is not for this user`, [`choose one from 1024 up with ${setting}`], { cause: error });
  }
  const listener = (await isReeve(error)) ? "another Reeve answers there" : "another program listens there";
  const hints = [
    `\`ss -ltnp 'sport = :${error.port}'\` shows its process; stop it, or choose another port with ${setting}`,
  ];
  throw new UsageError(`${at} is in use: ${listener}`, hints, { cause: error });
}

function isListenError(error: unknown): error is ListenError {
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error) || !("port" in error)) return false;
  return error.syscall === "listen" && (error.code === "EADDRINUSE" || error.code === "EACCES");
}

/** Asks for /healthz, which every service of Reeve answers to anyone, in cleartext. */
async function isReeve({ address, port }: ListenError): Promise<boolean> {
  const host = isIP(address) === 6 ? `[${address}]` : address;
  try {
    const answer = await fetch(`http://${host}:${port}/healthz`, {
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
      redirect: "error",
    });
    const body: unknown = await answer.json();
    return typeof body === "object" && body !== null && "status" in body && String(body.status).endsWith("SERVING");
  } catch {
    return false;
  }
}
