/** What is wrong with the address of a device's agent; undefined where nothing is. Never repeats the address. */
export function urlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//.test(text))
    return "must be the address of a device's agent, such as http://10.42.0.10:7402";
  if (url.username !== "" || url.password !== "")
    return "must not hold a name or a password: a device's agent takes none";
  if (url.search !== "" || url.hash !== "" || url.pathname !== "/")
    return "must end with the host or the port: a device's agent has no path there";
  return undefined;
}
