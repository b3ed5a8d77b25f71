import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Reports to the parent where this server listens, and how much processor time and memory it has used whenever asked. */
export function reportUsage(ready: { url: string; token?: string; ca?: string }): void {
  process.on("message", (message) => {
    if (message === "usage") {
      const { user, system } = process.cpuUsage();
      process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage.rss() });
    } else if (message === "memory") {
      collectGarbage();
      const { rss, heapUsed, external } = process.memoryUsage();
      process.send?.({ rssBytes: rss, heapBytes: heapUsed, externalBytes: external });
    }
  });
  process.send?.(ready);
}

/** Twice: what finalizers release is garbage after that. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
}
