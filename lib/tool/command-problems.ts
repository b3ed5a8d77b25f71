import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { InputProblem } from "../fault/invalid-input.ts";
import { isNotBlank, isProgram, PROGRAM_RULE, reservedVariables } from "../programs/run-input.ts";
import { type CommandField, type CommandFields, commandsIn } from "./commands.ts";
import type { JsonSchema } from "./json-schema.ts";

/**
 * What no device would run in the commands of a call's arguments: a blank program, a relative path to one, a variable that may
 * not be set. A schema cannot say it. It is checked where the input is, so that no person is asked about a call that the
 * device then refuses; the device's executor checks it again.
 */
export function commandProblems(schema: JsonSchema, args: JsonObject): InputProblem[] {
  return commandsIn(schema, args).flatMap(problemsOf);
}

function problemsOf({ argv, foreign_argv: foreign, environment }: CommandFields): InputProblem[] {
  return [
    ...(argv === undefined ? [] : programProblems(argv, isProgram)),
    ...(foreign === undefined ? [] : programProblems(foreign, isNotBlank)),
    ...(environment === undefined ? [] : variableProblems(environment)),
  ];
}

function programProblems({ path, value }: CommandField, fits: (program: string) => boolean): InputProblem[] {
  const [program = ""] = wordsOf(value);
  return fits(program) ? [] : [{ field: `${path}[0]`, rule: "program", message: PROGRAM_RULE }];
}

function variableProblems({ path, value }: CommandField): InputProblem[] {
  return reservedVariables(namesOf(value)).map(({ name, message }) => ({
    field: `${path}[${JSON.stringify(name)}]`,
    rule: "program",
    message,
  }));
}

/** The words of an argument list. */
export function wordsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}

/** The names of environment variables. */
export function namesOf(value: JsonValue | undefined): string[] {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.keys(value) : [];
}

/** A part of a command that is a text. */
export function textOf(field: CommandField | undefined): string {
  return typeof field?.value === "string" ? field.value : "";
}
