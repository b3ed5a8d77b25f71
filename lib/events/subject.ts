/** Every event's subject begins with this token. */
export const SUBJECT_ROOT = "reeve";

/** The longest subject, in characters. */
const MAX_SUBJECT_LENGTH = 255;

const TOKEN = /^[A-Za-z0-9_-]+$/;
const MAX_KEY_LENGTH = 100;

/**
 * The subject of an event: its type with the message's name in snake case, then the key of what it is about:
 * ("reeve.call.v1.CallFinished", "c1") gives "reeve.call.v1.call_finished.c1". Characters of the key that a
 * subject cannot hold become "_" and a long key is cut, so a subscriber to one key must still look at the payload.
 */
export function subjectOf(type: string, key: string): string {
  const packageEnd = type.lastIndexOf(".");
  const name = type.slice(packageEnd + 1).replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, "_");
  const token = key.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_KEY_LENGTH);
  return `${type.slice(0, packageEnd)}.${name.toLowerCase()}.${token || "_"}`;
}

/** True for a subject an event may be published on: plain tokens under the root. */
export function isSubject(subject: string): boolean {
  const tokens = subject.split(".");
  return (
    subject.length <= MAX_SUBJECT_LENGTH &&
    tokens.length > 1 &&
    tokens[0] === SUBJECT_ROOT &&
    tokens.every((token) => TOKEN.test(token))
  );
}

export type SubjectMatcher = (subject: string) => boolean;

/**
 * Compiles a subject pattern with NATS wildcards: "*" stands for one token, a final ">" for one or more.
 * Throws when the pattern is not one, or does not lie under the root.
 */
export function subjectMatcher(pattern: string): SubjectMatcher {
  const wanted = pattern.split(".");
  const open = wanted.at(-1) === ">";
  if (open) wanted.pop();
  const valid = wanted[0] === SUBJECT_ROOT && wanted.every((token) => token === "*" || TOKEN.test(token));
  if (!valid) throw new Error(`"${pattern}" is no subject pattern: it must begin with "${SUBJECT_ROOT}."`);
  return (subject) => {
    const tokens = subject.split(".");
    const fits = open ? tokens.length > wanted.length : tokens.length === wanted.length;
    return fits && wanted.every((token, i) => token === "*" || token === tokens[i]);
  };
}
