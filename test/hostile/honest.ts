import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** What an honest caller has seen so far. */
export interface HonestFigures {
  /** How long each /healthz took, in milliseconds. */
  healthMs: number[];
  /** Answers to /healthz that did not come, or were not 200. */
  healthFailed: number;
  callsDone: number;
  /** Governed calls that did not succeed, and what came instead. */
  failures: string[];
}

/** A caller with a token, who goes on until it is asked to stop. */
export interface HonestCaller {
  /** The figures since the last time, which begin anew. */
  take(): HonestFigures;
  stop(): Promise<void>;
}

/** Between two looks at the health, and between two calls, in milliseconds. */
const HEALTH_EVERY_MS = 25;
const CALL_EVERY_MS = 250;

/** No answer by then is a failure, in milliseconds. */
const PATIENCE_MS = 15_000;

/** Asks for the health and makes governed calls, each on a connection of its own: one that is kept shows less. */
export function startHonestCaller(url: string, token: string): HonestCaller {
  let figures = none();
  let isStopping = false;
  const health = async (): Promise<void> => {
    const began = performance.now();
    const status = await ask(`${url}/healthz`).then(
      ({ status: code }) => code,
      () => 0,
    );
    figures.healthMs.push(performance.now() - began);
    if (status !== 200) figures.healthFailed++;
  };
  const call = async (): Promise<void> => {
    const body = '{"device":"this","tool":"exec","params":{"argv":["uname"]}}';
    const answer = await ask(`${url}/invoke`, { token, body }).catch((error: unknown) => String(error));
    if (typeof answer !== "string" && answer.status === 200) figures.callsDone++;
    else figures.failures.push(typeof answer === "string" ? answer : `${answer.status} ${answer.text.slice(0, 300)}`);
  };
  const repeat = async (work: () => Promise<void>, everyMs: number): Promise<void> => {
    while (!isStopping) {
      await work();
      await sleep(everyMs);
    }
  };
  const running = Promise.all([repeat(health, HEALTH_EVERY_MS), repeat(call, CALL_EVERY_MS)]);
  return {
    take() {
      const taken = figures;
      figures = none();
      return taken;
    },
    async stop() {
      isStopping = true;
      await running;
    },
  };
}

function none(): HonestFigures {
  return { healthMs: [], healthFailed: 0, callsDone: 0, failures: [] };
}

function ask(url: string, post?: { token: string; body: string }): Promise<{ status: number; text: string }> {
  const headers =
    post === undefined ? {} : { authorization: `Bearer ${post.token}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { method: post === undefined ? "GET" : "POST", headers, agent: false, timeout: PATIENCE_MS };
    const sent = request(url, options, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)));
    sent.on("error", reject);
    sent.end(post?.body);
  });
}
