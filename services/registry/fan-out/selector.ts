import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** Says whether a device's labels are those that are wanted. */
export type Selector = (labels: Readonly<Record<string, string>>) => boolean;

type Requirement =
  | { key: string; operator: "=" | "!="; value: string }
  /** The device has the label, with any value. */
  | { key: string; operator: "there" };

const KEY = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?$/;

/**
 * Reads a selector such as "role=web,zone!=eu,gpu": all requirements must hold, a bare key means that the device has the label,
 * and "!=" holds too where the label is not. Spaces around keys and values do not count. Throws INVALID_INPUT, naming the
 * field and the requirement that is wrong.
 */
export function parseSelector(text: string): Selector {
  const requirements = text.split(",").map((part) => readRequirement(part.trim()));
  return (labels) => requirements.every((requirement) => holds(requirement, labels));
}

function readRequirement(text: string): Requirement {
  const [, key = "", operator, value = ""] = /^([^=!]*?)\s*(?:(!=|=)\s*(.*))?$/s.exec(text) ?? [];
  if (text === "") throw wrong(text, "there is an empty requirement");
  if (!KEY.test(key)) throw wrong(text, `"${key === "" ? text : key}" is no label's key`);
  if (operator === undefined) return { key, operator: "there" };
  if (value === "" || /[=!]/.test(value)) throw wrong(text, `"${text}" is not key=value or key!=value`);
  return { key, operator: operator === "=" ? "=" : "!=", value };
}

function holds(requirement: Requirement, labels: Readonly<Record<string, string>>): boolean {
  const label = Object.hasOwn(labels, requirement.key) ? labels[requirement.key] : undefined;
  if (requirement.operator === "there") return label !== undefined;
  return (label === requirement.value) === (requirement.operator === "=");
}

function wrong(requirement: string, why: string): Error {
  const message = `${why}; a selector is such as role=web,zone!=eu`;
  return fault(
    ErrorReason.INVALID_INPUT,
    { field: "selector", rule: "selector", requirement },
    { message: `selector: ${message}`, violations: [{ field: "selector", message }] },
  );
}
