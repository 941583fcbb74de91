import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Distribution, Head, StageTimes } from "./data";
import { colour } from "./system";

/** Draws a chart as wide as the page lets it be, and again when that changes. */
export function Chart({ draw, label }: { draw: (width: number) => Element; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    if (place.current) observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) place.current?.replaceChildren(draw(width));
  }, [width, draw]);
  return <div class="chart" ref={place} role="img" aria-label={label} />;
}

export function short(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

export const STYLE = { background: "none", color: "var(--muted)", fontFamily: "inherit", fontSize: "12px" };

function marginFor(systems: string[], width: number): number {
  const longest = Math.max(0, ...systems.map((name) => name.length));
  return Math.min(20 + Math.ceil(7.2 * longest), Math.floor(width / 2.8));
}

/** Shortens names to what a margin holds. */
function fit(margin: number): (name: string) => string {
  return (name) => short(name, Math.max(6, Math.floor((margin - 12) / 7.2)));
}

/** How often each value was scored, one strip per system, on one scale. */
export function Distributions({ head }: { head: Head }) {
  const [chosen, setChosen] = useState(0);
  const shown = head.distributions[chosen];
  if (!shown) return null;
  return (
    <>
      {head.distributions.length > 1 && (
        <label class="pick">
          Score
          <select value={chosen} onChange={(event) => setChosen(Number(event.currentTarget.value))}>
            {head.distributions.map(({ score }, at) => (
              <option key={score} value={at}>
                {score}
              </option>
            ))}
          </select>
        </label>
      )}
      <Histogram key={shown.score} head={head} shown={shown} />
    </>
  );
}

function Histogram({ head, shown }: { head: Head; shown: Distribution }) {
  const isBinary = shown.edges.length === 3;
  const [draw] = useState(() => (width: number) => {
    if (isBinary) return shares(head, shown, width);
    const systems = Object.keys(shown.systems);
    const margin = marginFor(systems, width);
    const bars = systems.flatMap((system) => {
      const counts = shown.systems[system] ?? [];
      const total = counts.reduce((sum, count) => sum + count, 0);
      return counts.map((count, bin) => ({
        system,
        count,
        share: total ? count / total : 0,
        from: shown.edges[bin] as number,
        to: shown.edges[bin + 1] as number,
      }));
    });
    return Plot.plot({
      width,
      height: 40 + 56 * systems.length,
      marginLeft: margin,
      marginRight: 16,
      style: STYLE,
      fy: { domain: systems, label: null, padding: 0.25, axis: "left", tickFormat: fit(margin) },
      x: { label: null },
      y: { axis: null, domain: [0, Math.max(...bars.map((bar) => bar.share), 0.01)] },
      marks: [
        Plot.rectY(bars, {
          fy: "system",
          x1: "from",
          x2: "to",
          y: "share",
          inset: 0.5,
          fill: (bar: { system: string }) => colour(head, bar.system),
          fillOpacity: 0.8,
        }),
        Plot.ruleY([0], { stroke: "var(--line-strong)" }),
        Plot.tip(
          bars,
          Plot.pointerX({
            fy: "system",
            x1: "from",
            x2: "to",
            y: "share",
            fill: "var(--panel)",
            stroke: "var(--line-strong)",
            title: (bar) =>
              `${bar.system}\n${bar.count.toLocaleString("en")} rows from ${+bar.from.toFixed(3)} to ${+bar.to.toFixed(3)}`,
          }),
        ),
      ],
    });
  });
  return <Chart draw={draw} label={`Distribution of ${shown.score} by system`} />;
}

/** How many rows scored 1, and how many 0: all that a 0/1 score needs. */
function shares(head: Head, shown: Distribution, width: number): Element {
  const systems = Object.keys(shown.systems);
  const margin = marginFor(systems, width);
  const bars = systems.map((system) => {
    const [zero = 0, one = 0] = shown.systems[system] ?? [];
    return { system, zero, one, share: zero + one ? one / (zero + one) : 0 };
  });
  const row = { y: "system" } as const;
  return Plot.plot({
    width,
    height: 40 + 34 * systems.length,
    marginLeft: margin,
    marginRight: 128,
    style: STYLE,
    x: {
      domain: [0, 1],
      label: null,
      percent: false,
      ticks: 5,
      tickFormat: (value: number) => `${Math.round(100 * value)}%`,
    },
    y: { domain: systems, label: null, tickSize: 0, padding: 0.35, tickFormat: fit(margin) },
    marks: [
      Plot.barX(bars, { ...row, x1: 0, x2: 1, fill: "var(--sunken)" }),
      Plot.barX(bars, { ...row, x1: 0, x2: "share", fill: (bar) => colour(head, bar.system), fillOpacity: 0.85 }),
      Plot.text(bars, {
        ...row,
        x: 1,
        dx: 8,
        textAnchor: "start",
        fill: "var(--text)",
        text: (bar) => `${bar.one.toLocaleString("en")} of ${(bar.one + bar.zero).toLocaleString("en")}`,
      }),
    ],
  });
}

/** From the median to the slowest row, by stage, on a logarithmic scale. */
export function Times({ head }: { head: Head }) {
  const [draw] = useState(() => (width: number) => timesChart(head, width));
  if (head.times.length === 0) return null;
  return <Chart draw={draw} label="Time by stage and system, from the median to the slowest row" />;
}

const FASTEST = 1e-6;

function timesChart(head: Head, width: number): Element {
  const stages = [...new Set(head.times.map((line) => line.stage))];
  const systems = head.systems.filter((name) => head.times.some((line) => line.system === name));
  const margin = marginFor(systems, width);
  const at = (place: number) => (line: StageTimes) => Math.max(FASTEST, line.seconds[place] ?? FASTEST);
  const stroke = (line: StageTimes) => colour(head, line.system);
  const row = { fy: "stage", y: "system" } as const;
  return Plot.plot({
    width,
    height: 34 + stages.length * (26 + 20 * systems.length),
    marginLeft: margin,
    marginTop: 22,
    marginRight: 16,
    style: STYLE,
    fy: { domain: stages, axis: null, padding: 0.2 },
    y: { domain: systems, label: null, tickSize: 0, tickFormat: fit(margin) },
    x: { type: "log", label: null, grid: true, ticks: 5, tickFormat: spanOf },
    marks: [
      Plot.text(
        stages.map((stage) => ({ stage })),
        { fy: "stage", text: "stage", frameAnchor: "top-left", dy: -14, fill: "var(--text)", fontWeight: 600 },
      ),
      Plot.link(head.times, {
        ...row,
        x1: at(0),
        x2: at(3),
        y1: "system",
        y2: "system",
        stroke,
        strokeOpacity: 0.35,
        strokeWidth: 2,
      }),
      Plot.link(head.times, {
        ...row,
        x1: at(0),
        x2: at(1),
        y1: "system",
        y2: "system",
        stroke,
        strokeWidth: 5,
        strokeLinecap: "round",
      }),
      Plot.dot(head.times, { ...row, x: at(0), fill: "var(--panel)", stroke, strokeWidth: 2, r: 4 }),
      Plot.dot(head.times, { ...row, x: at(3), stroke, symbol: "times", r: 3 }),
      Plot.tip(
        head.times,
        Plot.pointer({
          ...row,
          x: at(1),
          fill: "var(--panel)",
          stroke: "var(--line-strong)",
          title: (line: StageTimes) =>
            `${line.system}, ${line.stage}\np50 ${line.texts[0]}\np95 ${line.texts[1]}\np99 ${line.texts[2]}\nmax ${line.texts[3]}`,
        }),
      ),
    ],
  });
}

function spanOf(seconds: number): string {
  if (seconds >= 60) return `${+(seconds / 60).toPrecision(2)} min`;
  if (seconds >= 1) return `${+seconds.toPrecision(2)} s`;
  return seconds >= 1e-3 ? `${+(seconds * 1e3).toPrecision(2)} ms` : `${+(seconds * 1e6).toPrecision(2)} us`;
}
