// The data that Python wrote into the page. Its texts come from elsewhere and are
// only shown as text nodes.

/** Characters, 1 if they are JSON, and how many were cut off. */
export type Text = [string, number, number];
export type Texts = Record<string, Text>;

export interface Cell {
  text: string;
  value?: number | null;
  low?: number;
  high?: number;
  interval?: string;
}

export interface Table {
  titles: string[];
  rows: Cell[][];
}

export interface Distribution {
  score: string;
  edges: number[];
  systems: Record<string, number[]>;
}

export interface StageTimes {
  system: string;
  stage: string;
  seconds: number[];
  texts: string[];
}

export interface FailureLine {
  what: "row" | "evaluator";
  system: string;
  origin: string;
  reason: string;
  count: number;
  message: string;
}

export interface Pair {
  a: string;
  b: string;
  score: string;
  sentence: string;
  claimed: boolean;
  examples: number;
  difference: string;
  interval: string;
  unit: string;
  value: number | null;
  low: number | null;
  high: number | null;
  p: string;
  test: string;
  tally: [number, number, number];
  detectable: string;
  costs: string[];
  flipped: [number, number];
  flips: { dataset: string; id: string; a: string; b: string; to_a: boolean }[];
}

export interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
  text: string;
}

export interface FrontPoint {
  system: string;
  quality: Estimate;
  cost: Estimate;
  layer: number;
  probability: string;
}

export interface Front {
  axis: string;
  title: string;
  examples: number;
  points: FrontPoint[];
}

/** A pair on the examples of one group. */
export interface GroupDifference {
  field: string;
  group: string;
  a: string;
  b: string;
  claimed: boolean;
  examples: number;
  difference: string;
  interval: string;
  p: string;
}

/** A table whose first column names the groups of a field, then one column per system. */
export interface GroupTable extends Table {
  field: string;
}

export interface HeatCell {
  dataset: string;
  system: string;
  length: number;
  depth: number;
  value: number;
  text: string;
  rows: number;
}

export interface Comparison {
  notes: string[];
  pairs: Pair[];
  groups: GroupDifference[];
  fronts: Front[];
}

export interface SweepPoint {
  system: string;
  label: string;
  value: string;
  tokens: number | null;
  score: number;
  low: number | null;
  high: number | null;
  text: string;
  interval: string;
  kept: string;
}

export interface Sweep {
  option: string;
  title: string;
  score: string;
  examples: number;
  curve: { name: string; points: SweepPoint[] };
  cuts: { name: string; points: SweepPoint[] }[];
  whole: SweepPoint | null;
  goal: number | null;
  needed: { low: number; at: number; high: number } | null;
  table: Table;
  note: string;
}

export interface Head {
  version: string;
  run: {
    id: string;
    state: string;
    created: string;
    took: string;
    rows: number;
    failed: number;
    datasets: string[];
    labels: Record<string, string>;
    parent: string;
  };
  systems: string[];
  threshold: number;
  references: string[];
  notes: string[];
  headline: Table;
  comparison: Comparison | null;
  sweep: Sweep | null;
  scores: Table | null;
  suites: Table | null;
  /** A few datasets beside each other, or many of them below each other. */
  datasets: Table | null;
  parts: GroupTable | null;
  groups: GroupTable[];
  heat: HeatCell[];
  distributions: Distribution[];
  times: StageTimes[];
  failures: FailureLine[];
  shown: { rows: number; text_limit: number; cut_texts: number };
}

/** The rows column by column, so that tens of thousands of them stay small. */
export interface Index {
  rows: {
    system: number[];
    example: number[];
    repeat: number[];
    score: (number | null)[];
    name: string[];
    tokens_in: (number | null)[];
    tokens_out: (number | null)[];
    latency: (number | null)[];
    failure: (string | null)[];
    said: string[];
  };
  examples: { id: string[]; dataset: string[]; asked: string[] };
  row_starts: number[];
  example_starts: number[];
}

export interface Body {
  fields: Texts;
  kept: string[];
  scores: Record<string, number | null>;
  details: Record<string, Texts>;
  evaluator_failures: Record<string, Texts>;
  failure: Texts | null;
  facts: Texts;
  metadata: Texts;
  times: number[];
}

function content(id: string): string {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no part named ${id}`);
  return element.textContent ?? "";
}

export function readHead(): Head {
  return JSON.parse(content("report")) as Head;
}

async function unpack<T>(id: string): Promise<T> {
  const binary = atob(content(id));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text()) as T;
}

export function readIndex(): Promise<Index> {
  return unpack<Index>("index");
}

const CHUNKS_KEPT = 8;
const chunks = new Map<string, Promise<unknown[]>>();

async function record<T>(kind: string, starts: number[], place: number): Promise<T> {
  const number = starts.findLastIndex((start) => start <= place);
  const id = `${kind}-${number}`;
  const chunk = chunks.get(id) ?? unpack<unknown[]>(id);
  // The chunk used last moves to the end; the one at the front is dropped.
  chunks.delete(id);
  chunks.set(id, chunk);
  if (chunks.size > CHUNKS_KEPT) chunks.delete(chunks.keys().next().value as string);
  return (await chunk)[place - (starts[number] ?? 0)] as T;
}

export async function readRow(index: Index, row: number): Promise<{ body: Body; original: Texts }> {
  const example = index.rows.example[row] ?? 0;
  const [body, original] = await Promise.all([
    record<Body>("row", index.row_starts, row),
    record<Texts>("example", index.example_starts, example),
  ]);
  return { body, original };
}
