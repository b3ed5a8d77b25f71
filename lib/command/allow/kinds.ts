import { isReadingAwk } from "./scripts/awk.ts";
import { isReadingSed } from "./scripts/sed.ts";

/** Kinds of values whose text alone says whether they are harmless. */
export const KINDS: ReadonlyMap<string, (text: string) => boolean> = new Map<string, (text: string) => boolean>([
  ["any", () => true],
  ["int", (text) => /^[-+]?\d{1,9}$/.test(text)],
  ["size", (text) => /^[-+]?\d{1,9}[bcwkKMGTP]?B?$/.test(text)],
  ["unit", (text) => /^\d{0,9}(?:[kKMGTPE]i?B?)?$/.test(text) && text !== ""],
  ["float", (text) => /^\d{1,9}(?:\.\d{1,9})?$/.test(text)],
  // A pause, or how often something repeats: an answer has to come soon.
  ["seconds", (text) => /^\d{1,2}(?:\.\d{1,3})?s?$/.test(text) && Number.parseFloat(text) <= 30],
  ["count", (text) => /^\d{1,2}$/.test(text)],
  ["word", (text) => /^[\w.,:+%@#~^=*-]+$/.test(text) && !text.startsWith("-")],
  ["name", (text) => /^[A-Za-z0-9_][\w.+:@-]*$/.test(text)],
  ["names", (text) => /^[A-Za-z0-9_][\w.+:@,*-]*$/.test(text)],
  ["time", (text) => /^[\w.:+,/ @-]+$/.test(text)],
  ["mask", (text) => !text.startsWith("-")],
  ["when", (text) => /^(?:always|never|auto|yes|no)$/.test(text)],
  ["never", (text) => /^(?:never|no|false|off)$/.test(text)],
  ["ref", isReference],
  ["format", (text) => !/%G|%\(trailers|%\(signature/.test(text)],
  ["pretty", (text) => !/%G|%\(trailers/.test(text) && !/^raw-/.test(text)],
  ["+format", (text) => text.startsWith("+")],
  ["sed", isReadingSed],
  ["awk", isReadingAwk],
  [
    "jq",
    (text) =>
      !/(?<![.\w"])(?:env|import|include|modulemeta|get_search_list|input_filename|debug|halt|halt_error)\b|\$ENV|\$__prog/.test(
        text,
      ),
  ],
  ["awk-variable", (text) => /^[a-z_]\w*=[^\\]*$/.test(text)],
  ["address", (text) => /^[\w.:/-]+$/.test(text)],
  // Words of ss about connections, also several in one.
  ["filter", (text) => /^[\w.:/()[\]=<>!&|%* -]+$/.test(text) && !text.startsWith("-")],
  ["sysctl", (text) => /^[\w.*-]+(?:\/[\w.*-]+)*$/.test(text)],
  ["columns", (text) => /^[\w%,.:=+-]+$/.test(text) && !/(?:^|,)(?:env|environ)/i.test(text)],
  ["bsd", (text) => /^(?:[aAcfghjlmnoOrsTtuvwxXZ]+|\d+)$/.test(text)],
  ["field", (text) => /^[A-Z_][A-Z0-9_]*=[\s\S]*$/.test(text) || text === "+"],
  ["resource", isResource],
  [
    "output",
    (text) =>
      /^(?:json|yaml|wide|name|jsonpath=[\s\S]*|jsonpath-as-json=[\s\S]*|custom-columns=[\s\S]*|go-template=[\s\S]*)$/.test(
        text,
      ),
  ],
]);

/** A revision, a range or a path in a repository. One that names a file of secrets is not shown. */
function isReference(text: string): boolean {
  return (
    text !== "" &&
    !text.startsWith("-") &&
    !/[\0\n]/.test(text) &&
    !/:\/\/|^ext::|^[\w.]+=/.test(text) &&
    !/(?:^|[/:])\.(?:env|netrc|npmrc|ssh)\b/.test(text)
  );
}

/** A kind of Kubernetes resource, or one by name; not those that hold secrets, nor all at once. */
function isResource(text: string): boolean {
  return (
    /^[a-z][\w.,/-]*$/i.test(text) &&
    !/(?:^|[,/])(?:secrets?|sealedsecrets?|serviceaccounts?\/token)(?:$|[.,/])/i.test(text)
  );
}
