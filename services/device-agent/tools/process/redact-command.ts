import { cleanOutput, stripControls } from "../../../../lib/sanitize/sanitize.ts";

/** Names of options and variables whose value is a secret. */
const NAMES =
  "pass(?:wd|word|phrase|code)?|pwd|secret|token|credentials?|auth|api[-_]?key|access[-_]?key|private[-_]?key|secret[-_]?key|client[-_]?secret";

/** "NAME=value", "--NAME=value", "NAME: value" and the same inside longer names, such as DB_PASSWORD=value. */
const ASSIGNED = new RegExp(
  `((?<![\\w.-])[\\w.-]{0,40}?(?:${NAMES})[\\w.-]{0,20}["']?[=:])("[^"]{1,1024}"|'[^']{1,1024}'|[^\\s&,;"']{1,1024})`,
  "gi",
);

/** "--NAME value". */
const OPTION = new RegExp(
  `((?<![\\w-])--?[\\w-]{0,40}?(?:${NAMES})\\s+)("[^"]{1,1024}"|'[^']{1,1024}'|[^\\s-]\\S{0,1023})`,
  "gi",
);

/** Short options that some clients take a password in: mysql -pSECRET, sshpass -p SECRET, curl -u NAME:SECRET. */
const CLIENTS: readonly RegExp[] = [
  /(\b(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n]{0,512}?\s-p)(\S{1,256})/g,
  /(\bsshpass\s{1,4}-p\s{0,4})(\S{1,256})/g,
  /(\b(?:curl|wget)\b[^\n]{0,512}?\s(?:-u|--user)[\s=]{1,4}[^\s:]{1,128}:)(\S{1,256})/g,
];

const REDACTED = "[redacted]";

/** The longest command line that is shown, in bytes. */
const LONGEST = 4096;

/** How much of a command line is looked at, in characters. */
const LOOKED_AT = 16_384;

/**
 * A command line to show: secrets out, those of lib/sanitize and values that stand behind a name or option;
 * control characters out; one line; at most 4096 bytes.
 */
export function redactCommand(command: string): string {
  const line = stripControls(command.slice(0, LOOKED_AT)).replace(/\s+/g, " ");
  // By name first: what lib/sanitize puts in a secret's place would look like a value here.
  const named = [ASSIGNED, OPTION, ...CLIENTS].reduce((text, pattern) => text.replace(pattern, `$1${REDACTED}`), line);
  const { text } = cleanOutput(named);
  return new TextDecoder().decode(Buffer.from(text).subarray(0, LONGEST)).replace(/\ufffd$/, "");
}
