import * as Plot from "@observablehq/plot";
import { useState } from "preact/hooks";
import { Chart, STYLE } from "./charts";
import type { Head, Sweep, SweepPoint } from "./data";
import { colour } from "./system";

const LABEL_WIDTH = 44;

/** The score of one system over the tokens it left, against cuts of the same length and the whole. */
export function SweepCurve({ head, sweep }: { head: Head; sweep: Sweep }) {
  const [draw] = useState(() => (width: number) => sweepChart(head, sweep, width));
  const label = `${sweep.score} of ${sweep.curve.name} against ${sweep.title.toLowerCase()}`;
  return (
    <>
      <Chart draw={draw} label={label} />
      <ul class="legend">
        <li>
          <i class="stroke" style={{ borderColor: curveColour(head, sweep) }} />
          {sweep.curve.name}, with its 95% band
        </li>
        {sweep.cuts.map((cut, at) => (
          <li key={cut.name}>
            <i class="stroke dashed" style={{ borderColor: cutColour(at) }} />
            {cut.name}, same length
          </li>
        ))}
        {sweep.goal !== null && (
          <li>
            <i class="stroke dotted" />
            95% of {sweep.whole?.label}
          </li>
        )}
      </ul>
      <div class="scroll" tabIndex={0} role="region" aria-label="Sweep">
        <table>
          <thead>
            <tr>
              {sweep.table.titles.map((title, at) => (
                <th key={title} scope="col" class={at === 0 ? "first" : ""}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sweep.table.rows.map((row) => (
              <tr key={row[0]?.text}>
                <th scope="row" class="first">
                  {row[0]?.text}
                </th>
                {row.slice(1).map((cell, at) => (
                  <td key={at}>{cell.text}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">
        {sweep.note}. Bands are 95% intervals from resamples of the same examples for all curves
        {sweep.needed && ", and the shaded strip is the interval of the tokens that are enough"}.
      </p>
    </>
  );
}

// The last colours, which few runs reach with systems of their own.
function cutColour(at: number): string {
  return `var(--s${7 - (at % 3)})`;
}

function curveColour(head: Head, sweep: Sweep): string {
  return colour(head, sweep.curve.points[0]?.system ?? "");
}

function sweepChart(head: Head, sweep: Sweep, width: number): Element {
  const measured = (points: SweepPoint[]) =>
    points.filter(({ tokens }) => tokens !== null).toSorted((a, b) => (a.tokens ?? 0) - (b.tokens ?? 0));
  const own = measured(sweep.curve.points);
  const cuts = sweep.cuts.map((cut) => measured(cut.points));
  const whole = sweep.whole ? measured([sweep.whole]) : [];
  const needed = sweep.needed ? [sweep.needed] : [];
  const stroke = curveColour(head, sweep);
  const place = { x: "tokens", y: "score" } as const;
  const banded = own.filter(({ low, high }) => low !== null && high !== null);
  const most = Math.max(1, ...[...own, ...whole].map(({ tokens }) => tokens ?? 0));
  // A value that would stand on its neighbour's is left to the tip and the table.
  const named: SweepPoint[] = [];
  for (const point of own) {
    const gap = ((point.tokens ?? 0) - (named.at(-1)?.tokens ?? -most)) / most;
    if (gap * width > LABEL_WIDTH) named.push(point);
  }
  const all = [...own, ...cuts.flat(), ...whole];
  return Plot.plot({
    width,
    height: Math.min(440, Math.max(280, width * 0.45)),
    marginLeft: 44,
    marginRight: 24,
    marginBottom: 40,
    style: STYLE,
    x: { label: `${sweep.title} →`, labelAnchor: "right", zero: true, nice: true, ticks: 6 },
    y: { label: `↑ ${sweep.score}`, grid: true, nice: true, zero: true },
    marks: [
      Plot.rectX(needed, { x1: "low", x2: "high", fill: stroke, fillOpacity: 0.08 }),
      Plot.ruleX(needed, { x: "at", stroke, strokeOpacity: 0.6, strokeDasharray: "2 3" }),
      Plot.ruleY(sweep.goal === null ? [] : [sweep.goal], {
        stroke: "var(--line-strong)",
        strokeWidth: 1.5,
        strokeDasharray: "1 4",
      }),
      Plot.areaY(banded, { x: "tokens", y1: "low", y2: "high", fill: stroke, fillOpacity: 0.18 }),
      ...cuts.flatMap((points, at) => [
        Plot.line(points, { ...place, stroke: cutColour(at), strokeWidth: 1.5, strokeDasharray: "5 4" }),
        Plot.dot(points, { ...place, fill: cutColour(at), r: 2.5 }),
      ]),
      Plot.line(own, { ...place, stroke, strokeWidth: 2.5 }),
      Plot.dot(own, { ...place, fill: stroke, stroke: "var(--panel)", r: 5 }),
      Plot.dot(whole, { ...place, symbol: "diamond", r: 6, fill: "var(--panel)", stroke: "var(--text)" }),
      Plot.text(whole, {
        ...place,
        text: "label",
        dy: -14,
        textAnchor: "end",
        dx: 6,
        fill: "var(--text)",
        stroke: "var(--panel)",
        strokeWidth: 4,
      }),
      Plot.text(named, {
        ...place,
        text: "value",
        dy: 16,
        fill: "var(--text)",
        stroke: "var(--panel)",
        strokeWidth: 4,
      }),
      Plot.tip(
        all,
        Plot.pointer({
          ...place,
          fill: "var(--panel)",
          stroke: "var(--line-strong)",
          title: (point: SweepPoint) =>
            `${point.system}\n${sweep.score} ${point.text} (${point.interval})\n${point.kept} of the tokens`,
        }),
      ),
    ],
  });
}
