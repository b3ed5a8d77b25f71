/**
 * The address of Ollama's API from OLLAMA_HOST, as Ollama's own client reads it: a host, a host and port, or a URL, with
 * port 11434 where there is neither a port nor a scheme. A server's "every interface" is this machine. Undefined where
 * it is no address.
 */
export function ollamaUrl(host: string): string | undefined {
  const text = host.trim().replace(/^:/u, "127.0.0.1:");
  const hasScheme = text.includes("://");
  const address = hasScheme ? text : `http://${text}`;
  if (!URL.canParse(address)) return undefined;
  const url = new URL(address);
  if (!hasScheme && url.port === "" && !/:80(\/|$)/u.test(text)) url.port = "11434";
  if (url.hostname === "0.0.0.0") url.hostname = "127.0.0.1";
  if (url.hostname === "[::]") url.hostname = "[::1]";
  return url.href;
}
