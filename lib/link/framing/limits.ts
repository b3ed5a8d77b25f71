/** How many bytes of items may be in flight to a side. */
export const DEFAULT_WINDOW_BYTES = 1024 * 1024;

/** The most that a window may be opened to, whatever the other side says. */
export const MAX_WINDOW_BYTES = 64 * 1024 * 1024;

/**
 * What may be in flight beyond the window: a single item that is larger than all of it, and what is urgent. More than
 * that ends the link.
 */
export const WINDOW_SLACK_BYTES = 1024 * 1024;

/** The most bytes of one piece. */
export const PIECE_BYTES = 64 * 1024;

/** An item up to this size goes whole: as large as a piece, and the fields around a full chunk of output. */
export const MAX_WHOLE_BYTES = PIECE_BYTES + 1024;

/** An item up to this size goes before larger ones of other keys. */
export const PROMPT_BYTES = 8 * 1024;

/** The most bytes of small items in one frame, and with them at most one turn of large ones. */
export const FRAME_BYTES = 256 * 1024;

/** The most items in one frame. What reads a frame takes 1024. */
export const FRAME_ITEMS = 512;

/** The most bytes of one item's encoding. A larger one ends the link, on the side that should send it. */
export const MAX_ITEM_BYTES = 8 * 1024 * 1024;

/** The most bytes of items that are under way in pieces at a time. Further ones wait, or end the link of a liar. */
export const MAX_UNFINISHED_BYTES = 16 * 1024 * 1024;

/** The most items that are under way in pieces at a time: each is larger than a piece. */
export const MAX_UNFINISHED_ITEMS = MAX_UNFINISHED_BYTES / PIECE_BYTES;

/** Whole items that wait here, in bytes, before no more is taken from the source. */
export const WHOLE_BACKLOG_BYTES = 1024 * 1024;

/** Items that will go in pieces and wait here, in bytes, before no more is taken from the source. */
export const LARGE_BACKLOG_BYTES = 32 * 1024 * 1024;

/** How often a side checks its link, and shows the other one that it is alive, in milliseconds. */
export const DEFAULT_HEARTBEAT_MS = 1000;

/**
 * Where the connection can be pinged, so many heartbeats go without a frame that says nothing, but no more than this in
 * milliseconds. A proxy between the two may answer pings for a side that is gone, and can answer no frame.
 */
export const HEARTBEATS_PER_FRAME = 15;
export const MAX_FRAME_PAUSE_MS = 15_000;

/** How much of silence is too much, in the other side's heartbeats: three, less a margin to notice it within three. */
export const SILENT_HEARTBEATS = 2.75;

/** How long the first answer may take where nothing else is said. */
export const DEFAULT_ANSWER_MS = 2000;

/** How long the side that is dialed waits for the other's first message before it sends without framing. */
export const DEFAULT_PLAIN_AFTER_MS = 1000;
