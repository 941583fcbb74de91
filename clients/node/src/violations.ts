/** Fields of a request that are to blame, as `google.rpc.BadRequest` has them. */

import type { Metadata } from "@grpc/grpc-js";
import { BinaryReader } from "@bufbuild/protobuf/wire";

import type { FieldViolation } from "./errors.js";

const DETAILS = "grpc-status-details-bin";

/** Read what a status says of fields; nothing where it cannot be read. */
export function violationsIn(metadata: Metadata): FieldViolation[] {
  const [details] = metadata.get(DETAILS);
  if (!(details instanceof Uint8Array)) return [];
  try {
    // In a google.rpc.Status, 3 are the details; in an Any, 1 is the type and 2 the value.
    const told = fieldsOf(details, 3).map((any) => ({ type: textOf(any, 1), value: fieldsOf(any, 2)[0] }));
    const requests = told.filter(({ type }) => type.endsWith("/google.rpc.BadRequest"));
    const violations = requests.flatMap(({ value }) => (value === undefined ? [] : fieldsOf(value, 1)));
    return violations.map((each) => ({ field: textOf(each, 1), description: textOf(each, 2) }));
  } catch {
    // Details are a comfort; the status itself is known.
    return [];
  }
}

function textOf(message: Uint8Array, number: number): string {
  const [text] = fieldsOf(message, number);
  return text === undefined ? "" : new TextDecoder().decode(text);
}

function fieldsOf(message: Uint8Array, wanted: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    if (number === wanted) found.push(reader.bytes());
    else reader.skip(type);
  }
  return found;
}
