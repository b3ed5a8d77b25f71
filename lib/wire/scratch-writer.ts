import { BinaryWriter } from "@bufbuild/protobuf/wire";

/** Larger messages are rare, and their writer grows as the library's own does. */
const SCRATCH_BYTES = 64 * 1024;

/** The parts of the library's writer that the scratch buffer replaces. */
interface Writer {
  buffer: Uint8Array;
  viewCache: DataView;
  pos: number;
  ensureCapacity(size: number): void;
  finish(): Uint8Array;
}

const EMPTY = new Uint8Array(0);
const EMPTY_VIEW = new DataView(EMPTY.buffer);

/**
 * Makes every BinaryWriter of this process begin in one shared buffer, where the library allocates 128 bytes for each
 * message and doubles them: a governed call encodes about 15 messages. Encoding is synchronous and `finish` copies the
 * bytes out, so a second writer finds the buffer taken only where the first failed or is not finished; it gets a new one,
 * and the one that is finished last stays. Returns whether the library's writer is one that this fits; it is left as it is
 * where not. Safe to repeat.
 */
export function shareScratchBuffer(): boolean {
  isShared ??= install(BinaryWriter);
  return isShared;
}

let isShared: boolean | undefined;

/** Changes the prototype of one class of writers. The result is false, and nothing changed, where it is of another make. */
export function install(Class: typeof BinaryWriter): boolean {
  const writer = Class.prototype as unknown as Writer;
  if (!isAsKnown(new Class() as unknown as Writer)) return false;
  const { ensureCapacity, finish } = writer;
  let scratch: Uint8Array | undefined;
  writer.ensureCapacity = function (this: Writer, size: number): void {
    if (this.pos + size <= this.buffer.length) return;
    const { buffer } = this;
    if (buffer.length > 0 || size > SCRATCH_BYTES) {
      ensureCapacity.call(this, size);
      if (buffer.length === SCRATCH_BYTES) scratch = buffer;
      return;
    }
    this.buffer = scratch ?? new Uint8Array(SCRATCH_BYTES);
    scratch = undefined;
  };
  writer.finish = function (this: Writer): Uint8Array {
    const { buffer } = this;
    const bytes = finish.call(this);
    if (buffer.length !== SCRATCH_BYTES) return bytes;
    // The writer may write again. By then the buffer may be another's, and a view is only compared by its length.
    this.buffer = EMPTY;
    this.viewCache = EMPTY_VIEW;
    scratch = buffer;
    return bytes;
  };
  return true;
}

/** Whether a new writer has an empty buffer, a view of it, and bytes that `finish` copies. */
function isAsKnown(writer: Writer): boolean {
  const { buffer, viewCache, pos } = writer;
  const isEmpty =
    buffer instanceof Uint8Array &&
    buffer.length === 0 &&
    viewCache instanceof DataView &&
    viewCache.byteLength === 0 &&
    pos === 0;
  if (!isEmpty || typeof writer.ensureCapacity !== "function" || typeof writer.finish !== "function") return false;
  writer.ensureCapacity(1);
  if (writer.buffer.length < 1) return false;
  writer.buffer[writer.pos++] = 7;
  const bytes = writer.finish();
  return bytes.length === 1 && bytes[0] === 7 && bytes.buffer !== writer.buffer.buffer && writer.pos === 0;
}
