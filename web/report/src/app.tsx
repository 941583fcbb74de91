import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Distributions, Times } from "./charts";
import { Fronts, Pairs } from "./comparison";
import { type Head, type Index, readIndex } from "./data";
import { Example } from "./example";
import { GroupDifferences, Groups, HeatMaps } from "./groups";
import { count } from "./numbers";
import { Rows } from "./rows";
import { type Filter, NO_FILTER } from "./filter";
import { SweepCurve } from "./sweep";
import { SystemTable } from "./tables";
import { Failures, StageTable } from "./trouble";

interface Opened {
  row: number;
  listed: number[];
}

export function App({ head }: { head: Head }) {
  const [index, setIndex] = useState<Index | null>(null);
  const [trouble, setTrouble] = useState("");
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  const [opened, setOpened] = useState<Opened | null>(null);
  useEffect(() => {
    readIndex().then(setIndex, (error: unknown) => setTrouble(String(error)));
  }, []);
  useEffect(() => {
    const row = Number(/^#row-(\d+)$/.exec(location.hash)?.[1] ?? Number.NaN);
    if (index && row < index.rows.system.length) setOpened({ row, listed: [row] });
  }, [index]);
  const show = (next: Opened | null) => {
    setOpened(next);
    history.replaceState(null, "", next ? `#row-${next.row}` : "#");
  };
  const filterTo = (change: Partial<Filter>) => {
    setFilter({ ...NO_FILTER, ...change });
    document.getElementById("rows")?.scrollIntoView();
  };
  const find = (dataset: string, id: string) => {
    if (!index) return;
    const { rows, examples } = index;
    const of = (row: number) => rows.example[row] ?? 0;
    const listed = rows.system.flatMap((_, row) =>
      examples.id[of(row)] === id && examples.dataset[of(row)] === dataset ? [row] : [],
    );
    if (listed[0] !== undefined) show({ row: listed[0], listed });
    else filterTo({ text: id });
  };
  const { comparison } = head;
  return (
    <>
      <Top head={head} />
      <main>
        <Section id="summary" title="Summary">
          <SystemTable head={head} table={head.headline} caption="Summary" ranged={(column) => column === 1} />
          {head.headline.rows.some((row) => row.some((cell) => cell.interval)) && (
            <p class="note">Small numbers are 95% intervals.</p>
          )}
          {head.notes.map((note) => (
            <p key={note} class="note">
              {note}
            </p>
          ))}
        </Section>
        {head.sweep && (
          <Section id="sweep" title={`Sweep of ${head.sweep.option}`}>
            <SweepCurve head={head} sweep={head.sweep} />
          </Section>
        )}
        {comparison && comparison.pairs.length > 0 && (
          <Section id="comparison" title="Which is better">
            <Pairs head={head} comparison={comparison} find={find} />
            <GroupDifferences head={head} groups={comparison.groups} />
          </Section>
        )}
        {comparison && comparison.fronts.length > 0 && (
          <Section id="front" title="Quality against cost">
            <Fronts head={head} fronts={comparison.fronts} />
          </Section>
        )}
        {head.scores && (
          <Section id="scores" title="Every score">
            <SystemTable head={head} table={head.scores} caption="Mean of every score" ranged={() => true} />
          </Section>
        )}
        {head.suites && (
          <Section id="suites" title="By suite">
            <SystemTable head={head} table={head.suites} caption="Score by suite" ranged={() => true} />
          </Section>
        )}
        {head.datasets && (
          <Section id="datasets" title="By dataset">
            <SystemTable head={head} table={head.datasets} caption="Score by dataset" ranged={() => true} />
          </Section>
        )}
        {head.parts && (
          <Section id="parts" title="By dataset">
            <Groups head={head} tables={[head.parts]} />
          </Section>
        )}
        {head.groups.length > 0 && (
          <Section id="groups" title="By group">
            <Groups head={head} tables={head.groups} />
          </Section>
        )}
        {head.heat.length > 0 && (
          <Section id="heat" title="By length and depth">
            <HeatMaps head={head} cells={head.heat} />
          </Section>
        )}
        {head.distributions.length > 0 && (
          <Section id="distributions" title="Scores">
            <Distributions head={head} />
          </Section>
        )}
        {head.times.length > 0 && (
          <Section id="times" title="Time">
            <Times head={head} />
            <p class="note">
              From the median (ring) over the 95th percentile (thick) to the slowest row (cross). A call that ran into
              its time limit counts with it; other failed rows are left out.
            </p>
            <StageTable head={head} />
          </Section>
        )}
        {head.failures.length > 0 && (
          <Section id="failures" title="Failures">
            <Failures head={head} filterTo={filterTo} />
          </Section>
        )}
        <Section id="rows" title="Rows">
          <Shown head={head} />
          {trouble && <p class="empty">The rows cannot be read: {trouble}</p>}
          {!trouble && !index && <p class="empty">Reading…</p>}
          {index && (
            <Rows
              head={head}
              index={index}
              filter={filter}
              setFilter={setFilter}
              open={(row, listed) => show({ row, listed })}
            />
          )}
        </Section>
      </main>
      <footer>cbench {head.version}. This page needs no network and sends nothing anywhere.</footer>
      {opened && index && (
        <Example
          head={head}
          index={index}
          row={opened.row}
          listed={opened.listed}
          show={(row) => show({ ...opened, row })}
          close={() => show(null)}
        />
      )}
    </>
  );
}

function Section({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section id={id} aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </section>
  );
}

function Top({ head }: { head: Head }) {
  const { run } = head;
  const isLong = run.datasets.length > 3;
  const facts = [
    `${count(run.rows)} rows`,
    run.failed > 0 ? `${count(run.failed)} failed` : "",
    run.took === "—" ? "" : `took ${run.took}`,
    new Date(run.created).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }),
  ].filter(Boolean);
  return (
    <header class="top">
      <div class="line">
        <h1>{isLong ? `${run.datasets.length} datasets` : run.datasets.join(", ") || "Evaluation"}</h1>
        <Theme />
      </div>
      <p class="facts">
        <span class={run.state === "succeeded" ? "state good" : "state bad"}>{run.state}</span>
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      {isLong && (
        <p class="facts id">
          {run.datasets.map((name) => (
            <span key={name}>{name}</span>
          ))}
        </p>
      )}
      <p class="facts id">
        {run.id && <span>{run.id}</span>}
        {run.parent && <span>rescored from {run.parent}</span>}
        {Object.entries(run.labels).map(([name, value]) => (
          <span key={name} class="label">
            {name}={value}
          </span>
        ))}
      </p>
    </header>
  );
}

function Theme() {
  const [theme, setTheme] = useState("");
  useEffect(() => {
    document.documentElement.style.colorScheme = theme || "light dark";
  }, [theme]);
  const isDark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  return (
    <button type="button" class="theme" onClick={() => setTheme(isDark ? "light" : "dark")}>
      {isDark ? "Light" : "Dark"}
    </button>
  );
}

function Shown({ head }: { head: Head }) {
  const { rows, text_limit, cut_texts } = head.shown;
  return (
    <>
      {rows < head.run.rows && (
        <p class="note">
          This page holds {count(rows)} of {count(head.run.rows)} rows, the first of each system; everything above is
          about all of them.
        </p>
      )}
      {cut_texts > 0 && (
        <p class="note">
          {count(cut_texts)} long texts are cut after {count(text_limit)} characters.
        </p>
      )}
    </>
  );
}
