import { expect, it } from "vitest";
import { createCapture } from "./capture.ts";

function captureOf(limit: number, chunks: Uint8Array[]) {
  const capture = createCapture(limit);
  for (const chunk of chunks) capture.push(chunk);
  return capture.end();
}

it("keeps everything up to the limit", () => {
  expect(captureOf(10, [Buffer.from("12345"), Buffer.from("67890")])).toEqual({ text: "1234567890", truncated: false });
});

it("keeps the same head and tail however the bytes are cut into chunks", () => {
  const text = Array.from({ length: 500 }, (_, i) => `line ${i}\n`).join("");
  const bytes = Buffer.from(text);
  const whole = captureOf(100, [bytes]);
  expect(whole.text.startsWith(text.slice(0, 50))).toBe(true);
  expect(whole.text.endsWith(text.slice(-50))).toBe(true);
  expect(whole.text).toContain(`[... ${bytes.length - 100} bytes left out ...]`);
  for (const size of [1, 2, 7, 49, 50, 51, 99, 100, 101, 1000]) {
    const chunks = [];
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
    expect(captureOf(100, chunks)).toEqual(whole);
  }
});

it("joins a character that comes in two chunks", () => {
  const bytes = Buffer.from("é€😀");
  const chunks = [...bytes].map((byte) => Buffer.of(byte));
  expect(captureOf(100, chunks).text).toBe("é€😀");
});

it("cuts between characters", () => {
  const { text } = captureOf(10, [Buffer.from("€".repeat(50))]);
  expect(text).toMatch(/^€\n\[\.\.\. \d+ bytes left out \.\.\.\]\n€$/);
});

it("never writes into a chunk it was given", () => {
  const first = Buffer.from("abcdefgh");
  captureOf(8, [first, Buffer.from("12345678")]);
  expect(first.toString()).toBe("abcdefgh");
});

it("keeps nothing with a limit of 0", () => {
  expect(captureOf(0, [Buffer.from("abc")])).toEqual({ text: "\n[... 3 bytes left out ...]\n", truncated: true });
});
