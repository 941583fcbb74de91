import * as Plot from "@observablehq/plot";
import { useState } from "preact/hooks";
import { Chart, STYLE, short } from "./charts";
import type { Cell, GroupDifference, GroupTable, Head, HeatCell } from "./data";
import { count } from "./numbers";
import { Range } from "./tables";
import { System, colour } from "./system";

/** The score of each system on each value of a field, one table per field. */
export function Groups({ head, tables }: { head: Head; tables: GroupTable[] }) {
  return (
    <>
      {tables.map((table) => (
        <Group key={table.field} head={head} table={table} />
      ))}
    </>
  );
}

function Group({ head, table }: { head: Head; table: GroupTable }) {
  const isSystem = (column: number) => column > 0 && head.systems.includes(table.titles[column] ?? "");
  const top = (cell: Cell) => Math.max(cell.value ?? 0, cell.high ?? 0);
  const scale = Math.max(1, ...table.rows.flatMap((row) => row.map(top)));
  return (
    <div class="scroll group" tabIndex={0} role="region" aria-label={`Score by ${table.field}`}>
      <table>
        <thead>
          <tr>
            {table.titles.map((title, column) => (
              <th key={column} scope="col" class={column === 0 ? "first" : ""}>
                {isSystem(column) ? <System head={head} name={title} /> : title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row[0]?.text}>
              <th scope="row" class="first">
                {row[0]?.text}
              </th>
              {row.slice(1).map((cell, at) => (
                <td key={at}>
                  <div class="figure">{cell.text}</div>
                  {cell.interval && <div class="interval">{cell.interval}</div>}
                  {isSystem(at + 1) && (
                    <Range cell={cell} scale={scale} colour={colour(head, table.titles[at + 1] ?? "")} />
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Pair by pair, the difference on each group. */
export function GroupDifferences({ head, groups }: { head: Head; groups: GroupDifference[] }) {
  const fields = [...new Set(groups.map(({ field }) => field))];
  return (
    <>
      {fields.map((field) => (
        <details key={field} class="by-group">
          <summary>Difference by {field}</summary>
          <div class="scroll" tabIndex={0} role="region" aria-label={`Difference by ${field}`}>
            <table>
              <thead>
                <tr>
                  {[field, "A", "B", "A − B", "95% interval", "p (Holm)", "Examples"].map((title, column) => (
                    <th key={title} scope="col" class={column === 0 ? "first" : ""}>
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {groups
                  .filter((each) => each.field === field)
                  .map((each) => (
                    <tr key={`${each.group}\n${each.a}\n${each.b}`}>
                      <th scope="row" class="first">
                        {each.group}
                      </th>
                      <td>
                        <System head={head} name={each.a} />
                      </td>
                      <td>
                        <System head={head} name={each.b} />
                      </td>
                      <td class={each.claimed ? "claimed" : ""}>{each.difference}</td>
                      <td>{each.interval || "—"}</td>
                      <td>{each.p}</td>
                      <td>{count(each.examples)}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
          <p class="note">p is adjusted by Holm for all groups of {field} and all pairs together.</p>
        </details>
      ))}
    </>
  );
}

/** The mean score for each length and depth, one map per dataset and system, on one scale. */
export function HeatMaps({ head, cells }: { head: Head; cells: HeatCell[] }) {
  const datasets = [...new Set(cells.map(({ dataset }) => dataset))];
  const maps = datasets.flatMap((dataset) =>
    head.systems.map((system) => ({
      system,
      title: datasets.length > 1 ? `${system} on ${dataset}` : system,
      cells: cells.filter((cell) => cell.system === system && cell.dataset === dataset),
    })),
  );
  return (
    <>
      {maps
        .filter((map) => map.cells.length > 0)
        .map((map) => (
          <HeatMap key={map.title} {...map} />
        ))}
      <Legend />
    </>
  );
}

function HeatMap({ system, title, cells }: { system: string; title: string; cells: HeatCell[] }) {
  const [draw] = useState(() => (width: number) => {
    const lengths = sorted(cells.map(({ length }) => length));
    const depths = sorted(cells.map(({ depth }) => depth));
    const side = Math.max(14, Math.min(34, 380 / depths.length));
    const wide = Math.min(width, 110 + 96 * lengths.length);
    const isNamed = side >= 18 && wide / lengths.length >= 44;
    return Plot.plot({
      width: wide,
      height: 52 + side * depths.length,
      marginLeft: 56,
      marginBottom: 38,
      marginTop: 14,
      style: STYLE,
      padding: 0.04,
      x: { domain: lengths, label: "length in tokens", tickFormat: (length: number) => length.toLocaleString("en") },
      y: { domain: depths, label: "depth in %", tickFormat: (depth: number) => `${depth}` },
      color: { type: "linear", domain: [0, 1], interpolate: shade, clamp: true },
      marks: [
        Plot.cell(cells, {
          x: "length",
          y: "depth",
          fill: "value",
          title: (cell: HeatCell) =>
            `${cell.text} at depth ${cell.depth}%, ${cell.length.toLocaleString("en")} tokens, ${cell.rows.toLocaleString("en")} rows`,
        }),
        isNamed
          ? Plot.text(cells, {
              x: "length",
              y: "depth",
              text: (cell: HeatCell) => cell.value.toFixed(2),
              fill: (cell: HeatCell) => (cell.value < 0.55 ? "#ffffff" : "#10231c"),
            })
          : null,
      ],
    });
  });
  return (
    <figure class="heat">
      <figcaption>{short(title, 80)}</figcaption>
      <Chart draw={draw} label={`Score of ${system} by length and depth`} />
    </figure>
  );
}

function Legend() {
  const steps = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return (
    <p class="note legend">
      Score:{" "}
      {steps.map((step) => (
        <span key={step}>
          <i class="swatch" style={{ background: shade(step) }} /> {step}{" "}
        </span>
      ))}
    </p>
  );
}

function sorted(values: number[]): number[] {
  return [...new Set(values)].toSorted((a, b) => a - b);
}

const STOPS = [
  [122, 28, 50],
  [190, 84, 54],
  [226, 164, 72],
  [187, 205, 120],
  [92, 178, 128],
] as const;

/** From dark red over yellow to green, darker below so that it reads without colours as well. */
function shade(value: number): string {
  const place = Math.min(Math.max(value, 0), 1) * (STOPS.length - 1);
  const at = Math.min(Math.floor(place), STOPS.length - 2);
  const [from, to] = [STOPS[at] ?? STOPS[0], STOPS[at + 1] ?? STOPS[4]];
  const mix = (channel: 0 | 1 | 2) => Math.round(from[channel] + (to[channel] - from[channel]) * (place - at));
  return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
}
