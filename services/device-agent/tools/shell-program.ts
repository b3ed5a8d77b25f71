/**
 * The program that reads shell text, with its arguments: bash, and on Windows PowerShell 7. No start-up file is read, and nothing is
 * asked. PowerShell says of a program in the text whether it failed (1), not its exit code. Pure.
 */
export function shellProgram(text: string, platform: string = process.platform): string[] {
  // After "--" the text is an operand, even where it begins with a dash.
  if (platform !== "win32") return ["bash", "--noprofile", "--norc", "-c", "--", text];
  // Windows has one command line and no argument list: encoded, no quote in the text can end it early.
  const encoded = Buffer.from(text, "utf16le").toString("base64");
  return ["pwsh", "-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded];
}
