import * as Plot from "@observablehq/plot";
import { useState } from "preact/hooks";
import { Chart, STYLE, short } from "./charts";
import type { Comparison, Front, FrontPoint, Head, Pair } from "./data";
import { count } from "./numbers";
import { System, colour } from "./system";

const PAIRS_SHOWN = 6;
const NAMED_POINTS = 12;

/** Every pair in one sentence, with the numbers behind it to unfold. */
export function Pairs({
  head,
  comparison,
  find,
}: {
  head: Head;
  comparison: Comparison;
  find: (dataset: string, id: string) => void;
}) {
  const [isWhole, setWhole] = useState(false);
  const pairs = isWhole ? comparison.pairs : comparison.pairs.slice(0, PAIRS_SHOWN);
  const scale = Math.max(
    1e-9,
    ...comparison.pairs.flatMap(({ low, high, value }) => [low, high, value].map((x) => Math.abs(x ?? 0))),
  );
  return (
    <>
      <ul class="pairs">
        {pairs.map((pair) => (
          <li key={`${pair.a}\n${pair.b}`}>
            <details>
              <summary>
                <Whisker head={head} pair={pair} scale={scale} />
                <span class={pair.claimed ? "claimed" : ""}>{pair.sentence}</span>
              </summary>
              <PairNumbers head={head} pair={pair} find={find} />
            </details>
          </li>
        ))}
      </ul>
      {comparison.pairs.length > pairs.length && (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {count(comparison.pairs.length)} comparisons
        </button>
      )}
      {comparison.notes.length > 0 && <p class="note">{comparison.notes.join(" ")}</p>}
    </>
  );
}

/** The difference and its interval around zero, in favour of the system that the sentence calls better. */
function Whisker({ head, pair, scale }: { head: Head; pair: Pair; scale: number }) {
  const isTurned = pair.claimed && (pair.value ?? 0) < 0;
  const at = (value: number | null) => `${50 + (46 * (isTurned ? -1 : 1) * (value ?? 0)) / scale}%`;
  const stroke = pair.claimed ? colour(head, isTurned ? pair.b : pair.a) : "var(--muted)";
  return (
    <svg class="whisker" aria-hidden="true">
      <line class="track" x1="50%" x2="50%" y1="0" y2="16" />
      <line x1={at(pair.low)} x2={at(pair.high)} y1="8" y2="8" stroke={stroke} stroke-width="2" />
      <circle cx={at(pair.value)} cy="8" r="3.5" fill={stroke} />
    </svg>
  );
}

function PairNumbers({ head, pair, find }: { head: Head; pair: Pair; find: (dataset: string, id: string) => void }) {
  const [wins, ties, losses] = pair.tally;
  return (
    <div class="pair">
      <p>
        <System head={head} name={pair.a} /> against <System head={head} name={pair.b} />
      </p>
      <dl class="fields">
        <div>
          <dt>difference in {pair.score}</dt>
          <dd>
            {pair.difference} {pair.unit}, 95% interval {pair.interval}
          </dd>
        </div>
        <div>
          <dt>p, adjusted for all pairs</dt>
          <dd>
            {pair.p} ({pair.test})
          </dd>
        </div>
        <div>
          <dt>examples</dt>
          <dd>
            {count(pair.examples)}: {count(wins)} won, {count(ties)} tied, {count(losses)} lost
          </dd>
        </div>
        <div>
          <dt>smallest difference this many would show</dt>
          <dd>
            {pair.detectable} {pair.unit}
          </dd>
        </div>
        {pair.costs.length > 0 && (
          <div>
            <dt>use</dt>
            <dd>{pair.costs.join(", ")}</dd>
          </div>
        )}
        <div>
          <dt>examples that flipped</dt>
          <dd>
            {count(pair.flipped[0])} to {pair.a}, {count(pair.flipped[1])} to {pair.b}
          </dd>
        </div>
      </dl>
      {pair.flips.length > 0 && (
        <ul class="flips">
          {pair.flips.map((flip) => (
            <li key={`${flip.dataset}\n${flip.id}`}>
              <button type="button" onClick={() => find(flip.dataset, flip.id)}>
                {flip.id}{" "}
                <span class={flip.to_a ? "good" : "bad"}>
                  {flip.a} / {flip.b}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Quality against what it costs; the line joins the systems that none beats on both. */
export function Fronts({ head, fronts }: { head: Head; fronts: Front[] }) {
  const [chosen, setChosen] = useState(0);
  const front = fronts[chosen];
  if (!front) return null;
  return (
    <>
      {fronts.length > 1 && (
        <div class="views" role="group" aria-label="Cost">
          {fronts.map(({ axis, title }, at) => (
            <button key={axis} type="button" aria-pressed={at === chosen} onClick={() => setChosen(at)}>
              {title}
            </button>
          ))}
        </div>
      )}
      <FrontChart key={front.axis} head={head} front={front} />
      <div class="scroll" tabIndex={0} role="region" aria-label="Front">
        <table>
          <thead>
            <tr>
              <th scope="col" class="first">
                System
              </th>
              <th scope="col">Score</th>
              <th scope="col">{front.title}</th>
              <th scope="col">Front</th>
              <th scope="col">Probability</th>
            </tr>
          </thead>
          <tbody>
            {front.points.map((point) => (
              <tr key={point.system}>
                <th scope="row" class="first">
                  <System head={head} name={point.system} />
                </th>
                <td>{point.quality.text}</td>
                <td>{point.cost.text}</td>
                <td>{point.layer}</td>
                <td>{point.probability}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">
        Front 1 has the systems that no other system beats on both. Probability is how often a system is among them when
        the {count(front.examples)} examples are resampled.
      </p>
    </>
  );
}

function FrontChart({ head, front }: { head: Head; front: Front }) {
  const [draw] = useState(() => (width: number) => frontChart(head, front, width));
  return <Chart draw={draw} label={`Score against ${front.title.toLowerCase()}`} />;
}

function frontChart(head: Head, front: Front, width: number): Element {
  const points = front.points.filter(({ quality, cost }) => quality.value !== null && cost.value !== null);
  const best = points.filter(({ layer }) => layer === 1).toSorted((a, b) => (a.cost.value ?? 0) - (b.cost.value ?? 0));
  const costs = points.map(({ cost }) => cost.value as number);
  const isLog = Math.min(...costs) > 0 && Math.max(...costs) / Math.min(...costs) > 50;
  const along = (cost: number) => (isLog ? Math.log(cost / Math.min(...costs)) : cost);
  // A name next to a point at the right border would be cut off there.
  const isRight = ({ cost }: FrontPoint) => along(cost.value as number) > 0.6 * along(Math.max(...costs));
  const x = (point: FrontPoint) => point.cost.value;
  const y = (point: FrontPoint) => point.quality.value;
  const stroke = (point: FrontPoint) => colour(head, point.system);
  return Plot.plot({
    width,
    height: Math.min(420, Math.max(260, width * 0.5)),
    marginLeft: 44,
    marginRight: 24,
    marginBottom: 40,
    style: STYLE,
    x: {
      label: `${front.title} →`,
      labelAnchor: "right",
      type: isLog ? "log" : "linear",
      zero: !isLog,
      nice: !isLog,
      ticks: 5,
      tickFormat: isLog ? "~s" : undefined,
      inset: 16,
    },
    y: { label: "↑ Score", grid: true, nice: true, inset: 12 },
    marks: [
      Plot.line(best, { x, y, curve: "step-after", stroke: "var(--line-strong)", strokeDasharray: "4 3" }),
      Plot.ruleX(
        points.filter(({ quality }) => quality.low !== null),
        { x, y1: (p: FrontPoint) => p.quality.low, y2: (p: FrontPoint) => p.quality.high, stroke, strokeWidth: 1.5 },
      ),
      Plot.ruleY(
        points.filter(({ cost }) => cost.low !== null),
        { y, x1: (p: FrontPoint) => p.cost.low, x2: (p: FrontPoint) => p.cost.high, stroke, strokeWidth: 1.5 },
      ),
      Plot.dot(points, {
        x,
        y,
        r: 5,
        fill: (p: FrontPoint) => (p.layer === 1 ? stroke(p) : "var(--panel)"),
        stroke,
        strokeWidth: 2,
      }),
      ...[true, false].map((toTheLeft) =>
        Plot.text(points, {
          x,
          y,
          dy: -12,
          dx: toTheLeft ? -6 : 6,
          textAnchor: toTheLeft ? "end" : "start",
          fill: "var(--text)",
          stroke: "var(--panel)",
          strokeWidth: 4,
          text: (p: FrontPoint) => short(p.system, 24),
          filter: (p: FrontPoint) => points.length <= NAMED_POINTS && isRight(p) === toTheLeft,
        }),
      ),
      Plot.tip(
        points,
        Plot.pointer({
          x,
          y,
          fill: "var(--panel)",
          stroke: "var(--line-strong)",
          title: (p: FrontPoint) => `${p.system}\nscore ${p.quality.text}\n${front.title.toLowerCase()} ${p.cost.text}`,
        }),
      ),
    ],
  });
}
