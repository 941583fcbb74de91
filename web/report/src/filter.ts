// The filter and the order of the table of rows.

import type { Head, Index } from "./data";

export interface Filter {
  text: string;
  system: string;
  dataset: string;
  status: "" | "passed" | "missed" | "failed";
  reason: string;
}

export const NO_FILTER: Filter = { text: "", system: "", dataset: "", status: "", reason: "" };

export type SortKey = "example" | "system" | "score" | "tokens" | "latency";
export interface Order {
  key: SortKey;
  down: boolean;
}

/** Every text that a search looks at, once in lower case. */
export function searchable(head: Head, { rows, examples }: Index): string[] {
  return rows.system.map((system, row) => {
    const example = rows.example[row] ?? 0;
    const texts = [
      head.systems[system],
      examples.id[example],
      examples.dataset[example],
      examples.asked[example],
      rows.said[row],
      rows.failure[row] ?? "",
    ];
    return texts.join("\n").toLowerCase();
  });
}

export function matching(head: Head, { rows, examples }: Index, haystack: string[], filter: Filter): number[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const system = head.systems.indexOf(filter.system);
  const found: number[] = [];
  for (let row = 0; row < haystack.length; row++) {
    const failure = rows.failure[row] ?? null;
    if (filter.system && rows.system[row] !== system) continue;
    if (filter.dataset && examples.dataset[rows.example[row] ?? 0] !== filter.dataset) continue;
    if (filter.status && filter.status !== status(failure, rows.score[row] ?? null, head.threshold)) continue;
    if (filter.reason && failure !== filter.reason) continue;
    if (words.every((word) => haystack[row]?.includes(word))) found.push(row);
  }
  return found;
}

function status(failure: string | null, value: number | null, threshold: number): Filter["status"] {
  if (failure !== null) return "failed";
  if (value === null) return "";
  return value >= threshold ? "passed" : "missed";
}

export function sorted({ rows }: Index, found: number[], { key, down }: Order): number[] {
  const value = (row: number): number | null => {
    if (key === "score") return rows.score[row] ?? null;
    if (key === "tokens") return rows.tokens_out[row] ?? 0;
    if (key === "latency") return rows.latency[row] ?? null;
    return (key === "system" ? rows.system[row] : rows.example[row]) ?? 0;
  };
  // Equal rows stay in the order of examples; what has no value comes last either way.
  return found.sort((a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || a - b;
    return (down ? right - left : left - right) || (rows.example[a] ?? 0) - (rows.example[b] ?? 0) || a - b;
  });
}
