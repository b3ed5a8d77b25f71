/** One page of a list. */
export interface Page<T> {
  items: readonly T[];
  nextPageToken: string;
}

/** Reads page after page, up to `limit` items. Stops at a token that repeats: it would go round for ever. */
export async function readAll<T>(
  read: (pageToken: string, room: number) => Promise<Page<T>>,
  limit = Infinity,
): Promise<T[]> {
  const all: T[] = [];
  for (let token: string | undefined = ""; token !== undefined && all.length < limit; ) {
    const page: Page<T> = await read(token, limit - all.length);
    all.push(...page.items);
    token = page.nextPageToken === "" || page.nextPageToken === token ? undefined : page.nextPageToken;
  }
  return all.slice(0, limit === Infinity ? undefined : limit);
}
