import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Head, Index } from "./data";
import { System } from "./system";
import { count, score, seconds } from "./numbers";
import { type Filter, type Order, type SortKey, matching, searchable, sorted } from "./filter";

const ROW_HEIGHT = 56;
const TITLES_HEIGHT = 30;
const SPARE = 6;

export function Rows({
  head,
  index,
  filter,
  setFilter,
  open,
}: {
  head: Head;
  index: Index;
  filter: Filter;
  setFilter: (filter: Filter) => void;
  open: (row: number, listed: number[]) => void;
}) {
  const [order, setOrder] = useState<Order>({ key: "example", down: false });
  const haystack = useMemo(() => searchable(head, index), [head, index]);
  const listed = useMemo(
    () => sorted(index, matching(head, index, haystack, filter), order),
    [head, index, haystack, filter, order],
  );
  // Compressors return no response; an empty column would only take space.
  const isSilent = useMemo(() => index.rows.said.every((said) => !said), [index]);
  const sort = (key: SortKey) =>
    setOrder({ key, down: order.key === key ? !order.down : key !== "example" && key !== "system" });
  return (
    <>
      <Filters head={head} index={index} filter={filter} setFilter={setFilter} />
      <p class="count" aria-live="polite">
        {listed.length === index.rows.system.length
          ? `${count(listed.length)} rows`
          : `${count(listed.length)} of ${count(index.rows.system.length)} rows`}
      </p>
      <div class={isSilent ? "rows silent" : "rows"} role="grid" aria-rowcount={listed.length + 1} aria-label="Rows">
        <Window head={head} index={index} listed={listed} open={(row) => open(row, listed)}>
          <Titles order={order} sort={sort} />
        </Window>
      </div>
    </>
  );
}

const TITLES = [
  ["system", "System"],
  ["example", "Example"],
  ["", "Response"],
  ["score", "Score"],
  ["tokens", "Tokens"],
  ["latency", "Time"],
] as const;

function Titles({ order, sort }: { order: Order; sort: (key: SortKey) => void }) {
  const direction = order.down ? "descending" : "ascending";
  return (
    <div class="row titles" role="row">
      {TITLES.map(([key, title]) =>
        key === "" ? (
          <div key={title} role="columnheader" class="said">
            {title}
          </div>
        ) : (
          <div key={title} role="columnheader" class={key} aria-sort={order.key === key ? direction : "none"}>
            <button type="button" onClick={() => sort(key)}>
              {title}
            </button>
          </div>
        ),
      )}
    </div>
  );
}

function Filters({
  head,
  index,
  filter,
  setFilter,
}: {
  head: Head;
  index: Index;
  filter: Filter;
  setFilter: (filter: Filter) => void;
}) {
  const datasets = useMemo(() => [...new Set(index.examples.dataset)], [index]);
  const systems = head.systems.filter((_, number) => index.rows.system.includes(number));
  const set = (change: Partial<Filter>) => setFilter({ ...filter, ...change });
  return (
    <div class="filters">
      <input
        type="search"
        placeholder="Search ids, questions, responses, failures"
        aria-label="Search rows"
        value={filter.text}
        onInput={(event) => set({ text: event.currentTarget.value })}
      />
      <Choice label="System" value={filter.system} options={systems} change={(system) => set({ system })} />
      {datasets.length > 1 && (
        <Choice label="Dataset" value={filter.dataset} options={datasets} change={(dataset) => set({ dataset })} />
      )}
      <Choice
        label="Outcome"
        value={filter.status}
        options={["passed", "missed", "failed"]}
        change={(status) => set({ status: status as Filter["status"], reason: "" })}
      />
      {filter.reason && (
        <button type="button" class="chip" onClick={() => set({ reason: "" })} title="Show other failures too">
          {filter.reason} ×
        </button>
      )}
    </div>
  );
}

function Choice({
  label,
  value,
  options,
  change,
}: {
  label: string;
  value: string;
  options: string[];
  change: (value: string) => void;
}) {
  return (
    <select aria-label={label} value={value} onChange={(event) => change(event.currentTarget.value)}>
      <option value="">{label}: all</option>
      {options.map((option) => (
        <option key={option} value={option}>
          {option}
        </option>
      ))}
    </select>
  );
}

/** Draws only the rows that are visible, and a few above and below. */
function Window({
  head,
  index,
  listed,
  open,
  children,
}: {
  head: Head;
  index: Index;
  listed: number[];
  open: (row: number) => void;
  /** The header, which stays at the top. */
  children: ComponentChildren;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(() => setHeight((place.current?.clientHeight ?? 600) - TITLES_HEIGHT));
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    setActive(0);
    place.current?.scrollTo({ top: 0 });
  }, [listed]);
  const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - SPARE);
  const last = Math.min(listed.length, Math.ceil((top + height) / ROW_HEIGHT) + SPARE);
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / ROW_HEIGHT) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -listed.length,
      End: listed.length,
    };
    const step = steps[event.key];
    if (event.target !== place.current) return;
    if (step !== undefined) {
      const next = Math.max(0, Math.min(listed.length - 1, active + step));
      setActive(next);
      if (place.current) reveal(place.current, next, height);
      event.preventDefault();
    } else if (event.key === "Enter" && listed[active] !== undefined) {
      open(listed[active]);
      event.preventDefault();
    }
  };
  return (
    <div
      class="window"
      ref={place}
      tabIndex={0}
      aria-label="Rows: arrow keys move, Enter opens"
      aria-activedescendant={listed.length ? `listed-${active}` : undefined}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onKeyDown={onKeyDown}
      style={{ height: `${TITLES_HEIGHT + Math.min(640, Math.max(1.5, listed.length) * ROW_HEIGHT)}px` }}
    >
      {children}
      {listed.length === 0 && <p class="empty">No row matches.</p>}
      <div class="list" style={{ height: `${listed.length * ROW_HEIGHT}px` }}>
        {listed.slice(first, last).map((row, offset) => (
          <Row
            key={row}
            head={head}
            index={index}
            row={row}
            at={first + offset}
            isActive={first + offset === active}
            choose={() => {
              setActive(first + offset);
              open(row);
            }}
          />
        ))}
      </div>
    </div>
  );
}

function reveal(element: HTMLElement, at: number, height: number): void {
  const [from, to] = [at * ROW_HEIGHT, (at + 1) * ROW_HEIGHT];
  if (from < element.scrollTop) element.scrollTop = from;
  else if (to > element.scrollTop + height) element.scrollTop = to - height;
}

function Row({
  head,
  index,
  row,
  at,
  isActive,
  choose,
}: {
  head: Head;
  index: Index;
  row: number;
  at: number;
  isActive: boolean;
  choose: () => void;
}) {
  const { rows, examples } = index;
  const example = rows.example[row] ?? 0;
  const failure = rows.failure[row];
  const repeat = rows.repeat[row] ?? 0;
  return (
    <div
      class={isActive ? "row active" : "row"}
      id={`listed-${at}`}
      role="row"
      aria-rowindex={at + 2}
      data-row={row}
      style={{ top: `${at * ROW_HEIGHT}px` }}
      onClick={choose}
    >
      <div class="system" role="gridcell">
        <System head={head} name={head.systems[rows.system[row] ?? 0] ?? ""} />
        <small>{examples.dataset[example]}</small>
      </div>
      <div class="example" role="gridcell">
        <span>
          {examples.id[example]}
          {repeat > 0 && ` #${repeat + 1}`}
        </span>
        <small>{examples.asked[example]}</small>
      </div>
      <div class="said" role="gridcell">
        {failure ? <span class="failure">{failure}</span> : null}
        {failure ? <small>{rows.said[row]}</small> : <span class="clamp">{rows.said[row]}</span>}
      </div>
      <div class="score" role="gridcell">
        <Score value={rows.score[row] ?? null} failed={Boolean(failure)} threshold={head.threshold} />
        <small>{rows.name[row]}</small>
      </div>
      <div class="tokens" role="gridcell">
        <Left before={rows.tokens_in[row] ?? null} after={rows.tokens_out[row] ?? null} />
      </div>
      <div class="latency" role="gridcell">
        {rows.latency[row] ? seconds(rows.latency[row]) : "—"}
      </div>
    </div>
  );
}

/** What was left of the context, where that is known. */
function Left({ before, after }: { before: number | null; after: number | null }) {
  if (before === null || after === null) return <span>—</span>;
  return (
    <>
      <span>{count(after)}</span>
      <small>of {count(before)}</small>
    </>
  );
}

export function Score({ value, failed, threshold }: { value: number | null; failed: boolean; threshold: number }) {
  if (failed) return <span class="verdict bad">failed</span>;
  if (value === null) return <span class="verdict">—</span>;
  return <span class={value >= threshold ? "verdict good" : "verdict bad"}>{score(value)}</span>;
}
