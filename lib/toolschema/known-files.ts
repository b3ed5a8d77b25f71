import type { DescFile } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { file_reeve_options_v1_capability } from "../../gen/ts/reeve/options/v1/capability_pb.ts";
import { file_reeve_options_v1_tool } from "../../gen/ts/reeve/options/v1/tool_pb.ts";

const FILES: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
  file_google_protobuf_type,
  file_google_protobuf_api,
  file_buf_validate_validate,
  file_reeve_options_v1_tool,
  file_reeve_options_v1_capability,
];

/**
 * The files that services of others import and that have a meaning here: the well-known types, protovalidate's rules and
 * the option that makes a tool. Each after those that it imports.
 */
export const KNOWN_FILES: readonly FileDescriptorProto[] = FILES.map((file) => file.proto);

const NAMES = new Set(KNOWN_FILES.map((file) => file.name));

/** Whether a file, such as "google/protobuf/any.proto", is one of these. */
export function isKnownFile(name: string): boolean {
  return NAMES.has(name);
}
