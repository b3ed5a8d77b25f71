import type { DescEnum } from "@bufbuild/protobuf";

/** An enum value's name without what all begin with, in small letters: "pending". A newer value is its number. */
export function enumName(schema: DescEnum, value: number | undefined): string {
  return (schema.value[value ?? 0]?.localName ?? String(value)).toLowerCase();
}

/** The value of a name as `enumName` writes it; undefined for an unknown name, and for the unspecified one. */
export function enumValue<E extends number>(schema: DescEnum, name: string): E | undefined {
  const wanted = name.toLowerCase().replaceAll("-", "_");
  const found = schema.values.find(({ localName, number }) => number !== 0 && localName.toLowerCase() === wanted);
  return found?.number as E | undefined;
}

/** All names that `enumValue` takes. */
export function enumNames(schema: DescEnum): string[] {
  return schema.values.filter(({ number }) => number !== 0).map(({ localName }) => localName.toLowerCase());
}
