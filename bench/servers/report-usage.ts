/** Reports to the parent where this server listens, and how much processor time and memory it has used whenever asked. */
export function reportUsage(ready: { url: string; token?: string; ca?: string }): void {
  process.on("message", (message) => {
    if (message !== "usage") return;
    const { user, system } = process.cpuUsage();
    process.send?.({ cpuUs: user + system, rssBytes: process.memoryUsage.rss() });
  });
  process.send?.(ready);
}
