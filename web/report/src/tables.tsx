import { useState } from "preact/hooks";
import type { Cell, Head, Table } from "./data";
import { System, colour } from "./system";

interface Order {
  column: number;
  down: boolean;
}

/** A table whose first column names systems; a click on a title sorts by it. */
export function SystemTable({
  head,
  table,
  caption,
  ranged,
}: {
  head: Head;
  table: Table;
  caption: string;
  /** Columns to draw an interval in, on one scale from 0. */
  ranged: (column: number) => boolean;
}) {
  const [order, setOrder] = useState<Order | null>(null);
  const sort = (column: number) =>
    setOrder(order?.column === column ? (order.down ? { column, down: false } : null) : { column, down: true });
  const rows = order === null ? table.rows : table.rows.toSorted((a, b) => compare(a, b, order));
  const scale = Math.max(1, ...table.rows.flatMap((row) => row.filter((_, at) => ranged(at)).map(top)));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <thead>
          <tr>
            {table.titles.map((title, column) => (
              <th key={column} scope="col" aria-sort={ariaSort(order, column)} class={column === 0 ? "first" : ""}>
                <button type="button" onClick={() => sort(column)}>
                  {title}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row[0]?.text}>
              <th scope="row" class="first">
                <System head={head} name={row[0]?.text ?? ""} />
              </th>
              {row.slice(1).map((cell, at) => (
                <td key={at}>
                  <div class="figure">{cell.text}</div>
                  {cell.interval && <div class="interval">{cell.interval}</div>}
                  {ranged(at + 1) && <Range cell={cell} scale={scale} colour={colour(head, row[0]?.text ?? "")} />}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Range({ cell, scale, colour }: { cell: Cell; scale: number; colour: string }) {
  if (cell.value === null || cell.value === undefined || cell.value < 0) return null;
  const at = (value: number) => `${(100 * Math.max(0, value)) / scale}%`;
  return (
    <svg class="range" aria-hidden="true">
      <line class="track" x1="0" x2="100%" y1="4" y2="4" />
      {cell.low !== undefined && cell.high !== undefined && (
        <line class="band" x1={at(cell.low)} x2={at(cell.high)} y1="4" y2="4" stroke={colour} />
      )}
      <circle cx={at(cell.value)} cy="4" r="3" fill={colour} />
    </svg>
  );
}

function top(cell: Cell): number {
  return Math.max(cell.value ?? 0, cell.high ?? 0);
}

function ariaSort(order: Order | null, column: number): "ascending" | "descending" | "none" {
  if (order?.column !== column) return "none";
  return order.down ? "descending" : "ascending";
}

/** Sorts by value, with missing values last. */
function compare(a: Cell[], b: Cell[], { column, down }: Order): number {
  const [left, right] = [a[column], b[column]].map((cell) => cell?.value ?? number(cell?.text));
  if (left === undefined || right === undefined) {
    if (left !== right) return left === undefined ? 1 : -1;
    const names = (a[column]?.text ?? "").localeCompare(b[column]?.text ?? "");
    return down ? -names : names;
  }
  return down ? right - left : left - right;
}

function number(text = ""): number | undefined {
  const value = Number.parseFloat(text.replaceAll(",", ""));
  return Number.isNaN(value) ? undefined : value;
}
