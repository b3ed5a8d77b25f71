/** Bytes of one message, where a server or a client has no other limit. */
export const READ_MAX_BYTES = 4 * 1024 * 1024;

/**
 * Megabytes that one HTTP/2 connection may buffer, on either side. With node's default of 10, three large answers under
 * way make it refuse every other stream of the connection with ENHANCE_YOUR_CALM.
 */
export const H2_SESSION_MEGABYTES = 128;
