/**
 * Opens one side of a bidirectional stream: what is sent goes in, what comes back comes out. A client's streaming method
 * is one; so is a service's own handler, where both are in one process. The messages are the same, so that nothing but
 * the choice of opener tells one machine from many; without sockets they need no encoding, which is most of what a
 * message costs.
 */
export type LinkOpener<Req, Res> = (requests: AsyncIterable<Req>, signal: AbortSignal) => AsyncIterable<Res>;
