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
  return [...(await readPages(read, { limit })).items];
}

/** Which part of a list to read. */
export interface Part<T> {
  /** How many at most. */
  limit: number;
  /** Where to start. Default the beginning. */
  pageToken?: string | undefined;
  /** False for the first item that is not wanted any more, and all after it. Default: all are wanted. */
  isWanted?: ((item: T) => boolean) | undefined;
}

/** As `readAll`, with where the next page starts; empty where there is none that is wanted. */
export async function readPages<T>(
  read: (pageToken: string, room: number) => Promise<Page<T>>,
  { limit, pageToken = "", isWanted = () => true }: Part<T>,
): Promise<Page<T>> {
  const items: T[] = [];
  for (let token = pageToken; items.length < limit; ) {
    const page: Page<T> = await read(token, limit - items.length);
    const wanted = page.items.slice(0, limit - items.length);
    const end = wanted.findIndex((item) => !isWanted(item));
    items.push(...(end < 0 ? wanted : wanted.slice(0, end)));
    if (end >= 0 || page.nextPageToken === token) return { items, nextPageToken: "" };
    token = page.nextPageToken;
    if (token === "" || items.length === limit) return { items, nextPageToken: token };
  }
  return { items, nextPageToken: pageToken };
}
