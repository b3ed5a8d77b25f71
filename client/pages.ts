/** A page of any List RPC. */
export interface Page {
  nextPageToken: string;
}

/**
 * Reads page after page of a List RPC: `pages((pageToken) => devices.listDevices({ pageToken }))`.
 *
 * @param read returns the page of a token; empty for the first one.
 */
export async function* pages<P extends Page>(read: (pageToken: string) => Promise<P>): AsyncGenerator<P, void, void> {
  for (let token: string | undefined = ""; token !== undefined; ) {
    const page: P = await read(token);
    yield page;
    // A token that repeats would go round for ever.
    token = page.nextPageToken === "" || page.nextPageToken === token ? undefined : page.nextPageToken;
  }
}

/**
 * Reads every item of a List RPC, page after page:
 * `items((pageToken) => calls.listCalls({ pageToken }), (page) => page.calls)`.
 */
export async function* items<P extends Page, T>(
  read: (pageToken: string) => Promise<P>,
  itemsOf: (page: P) => Iterable<T>,
): AsyncGenerator<T, void, void> {
  for await (const page of pages(read)) yield* itemsOf(page);
}
