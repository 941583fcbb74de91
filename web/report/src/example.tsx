import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Body, type Head, type Index, type Text, type Texts, readRow } from "./data";
import { diffWords } from "./diff";
import { seconds } from "./numbers";
import { Score } from "./rows";
import { System } from "./system";
import { Cut, Fields, Prose, listed } from "./texts";

const STAGES = ["queue", "system", "reader", "scoring"];
const ASKED = ["question", "prompt", "instruction", "query", "premise", "hypothesis", "choices"];

/** One row with everything about it, in a dialog over the page. */
export function Example({
  head,
  index,
  row,
  listed,
  show,
  close,
}: {
  head: Head;
  index: Index;
  row: number;
  listed: number[];
  show: (row: number) => void;
  close: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    title.current?.focus();
  }, []);
  const at = listed.indexOf(row);
  const step = (by: number) => {
    const next = listed[at + by];
    if (next !== undefined) show(next);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "j" || event.key === "ArrowRight") step(1);
    if (event.key === "k" || event.key === "ArrowLeft") step(-1);
  };
  const example = index.rows.example[row] ?? 0;
  return (
    <dialog
      ref={dialog}
      class="example"
      onClose={close}
      onKeyDown={onKeyDown}
      aria-labelledby="example-title"
      onClick={(event) => {
        if (event.target === dialog.current) dialog.current?.close();
      }}
    >
      <header>
        <div>
          <h2 id="example-title" tabIndex={-1} ref={title}>
            {index.examples.id[example]}
          </h2>
          <p>{index.examples.dataset[example]}</p>
        </div>
        <nav>
          <button
            type="button"
            disabled={at <= 0}
            onClick={() => step(-1)}
            title="Previous row (k)"
            aria-label="Previous row"
          >
            ↑
          </button>
          <button
            type="button"
            disabled={at < 0 || at >= listed.length - 1}
            onClick={() => step(1)}
            title="Next row (j)"
            aria-label="Next row"
          >
            ↓
          </button>
          <button type="button" onClick={() => dialog.current?.close()} title="Close (Escape)" aria-label="Close">
            ✕
          </button>
        </nav>
      </header>
      <Siblings head={head} index={index} row={row} show={show} />
      <Content key={row} head={head} index={index} row={row} />
    </dialog>
  );
}

/** The same example as every system answered it. */
function Siblings({ head, index, row, show }: { head: Head; index: Index; row: number; show: (row: number) => void }) {
  const { rows } = index;
  const same = useMemo(
    () => rows.example.flatMap((example, at) => (example === rows.example[row] ? [at] : [])),
    [rows, rows.example[row]],
  );
  return (
    <div class="siblings" role="group" aria-label="Systems">
      {same.map((at) => (
        <button key={at} type="button" aria-pressed={at === row} onClick={() => show(at)}>
          <System
            head={head}
            name={`${head.systems[rows.system[at] ?? 0]}${rows.repeat[at] ? ` #${(rows.repeat[at] ?? 0) + 1}` : ""}`}
          />
          <Score value={rows.score[at] ?? null} failed={rows.failure[at] !== null} threshold={head.threshold} />
        </button>
      ))}
    </div>
  );
}

function Content({ head, index, row }: { head: Head; index: Index; row: number }) {
  const [read, setRead] = useState<{ body: Body; original: Texts } | null>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    let isCurrent = true;
    readRow(index, row).then(
      (found) => isCurrent && setRead(found),
      (error: unknown) => isCurrent && setTrouble(String(error)),
    );
    return () => {
      isCurrent = false;
    };
  }, [index, row]);
  if (trouble) return <p class="empty">This row cannot be read: {trouble}</p>;
  if (read === null) return <p class="empty">Reading…</p>;
  return <Parts head={head} {...read} primary={index.rows.name[row] ?? ""} />;
}

function Parts({ head, body, original, primary }: { head: Head; body: Body; original: Texts; primary: string }) {
  const references = pick(original, (name) => head.references.includes(name));
  const asked = pick(original, (name) => ASKED.includes(name) && !(name in references));
  const marks = expected(references);
  const shown = new Set([...Object.keys(references), ...Object.keys(asked), "context"]);
  const rest = pick(original, (name) => !shown.has(name));
  const changed = pick(body.fields, (name) => name !== "context" && name !== "response");
  const response = body.fields["response"];
  return (
    <div class="content">
      {body.failure && (
        <section class="problem">
          <h3>Failed</h3>
          <Fields texts={body.failure} />
        </section>
      )}
      {Object.keys(asked).length > 0 && (
        <section class="asked">
          <Fields texts={asked} />
        </section>
      )}
      <div class="sides">
        {response && (
          <section>
            <h3>Response</h3>
            <Prose text={response} marks={marks} />
          </section>
        )}
        {Object.keys(references).length > 0 && (
          <section>
            <h3>Reference</h3>
            <Fields texts={references} />
          </section>
        )}
      </div>
      <Scores body={body} primary={primary} />
      <Evaluators body={body} />
      <Context
        before={original["context"]}
        after={body.fields["context"]}
        kept={body.kept.includes("context")}
        marks={marks}
      />
      {Object.keys(changed).length > 0 && (
        <section>
          <h3>Other fields the system returned</h3>
          <Fields texts={changed} />
        </section>
      )}
      <section>
        <h3>Time and use</h3>
        <dl class="fields">
          {body.times.map(
            (spent, at) =>
              spent > 0 && (
                <div key={at}>
                  <dt>{STAGES[at]}</dt>
                  <dd>{seconds(spent)}</dd>
                </div>
              ),
          )}
        </dl>
        <Fields texts={{ ...body.facts, ...body.metadata }} />
      </section>
      {Object.keys(rest).length > 0 && (
        <details>
          <summary>Everything else in the example</summary>
          <Fields texts={rest} />
        </details>
      )}
    </div>
  );
}

function Scores({ body, primary }: { body: Body; primary: string }) {
  const names = Object.keys(body.scores);
  if (names.length === 0) return null;
  return (
    <section>
      <h3>Scores</h3>
      <ul class="scores">
        {names.map((name) => (
          <li
            key={name}
            class={name === primary ? "primary" : ""}
            title={name === primary ? "The score that counts" : ""}
          >
            <span>{name}</span>
            <b>{body.scores[name]?.toFixed(3) ?? "—"}</b>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Evaluators({ body }: { body: Body }) {
  const names = [...new Set([...Object.keys(body.details), ...Object.keys(body.evaluator_failures)])];
  if (names.length === 0) return null;
  return (
    <section>
      <h3>What the evaluators said</h3>
      {names.map((name) => (
        <div key={name} class="evaluator">
          <h4>{name}</h4>
          {body.evaluator_failures[name] && (
            <div class="problem">
              <Fields texts={body.evaluator_failures[name]} />
            </div>
          )}
          {body.details[name] && <Fields texts={body.details[name]} />}
        </div>
      ))}
    </section>
  );
}

type View = "changes" | "before" | "after";

function Context({ before, after, kept, marks }: { before?: Text; after?: Text; kept: boolean; marks: string[] }) {
  const [view, setView] = useState<View>(before && after ? "changes" : after ? "after" : "before");
  if (!before && !after) return null;
  const views: View[] = before && after ? ["changes", "before", "after"] : [];
  const shown = view === "after" ? after : before;
  return (
    <section>
      <h3>Context{kept && <span class="aside"> left as it was</span>}</h3>
      {views.length > 0 && (
        <div class="views" role="group" aria-label="View of the context">
          {views.map((name) => (
            <button key={name} type="button" aria-pressed={name === view} onClick={() => setView(name)}>
              {name}
            </button>
          ))}
        </div>
      )}
      {view === "changes" && before && after ? (
        <Changes before={before} after={after} />
      ) : (
        shown && <Prose text={shown} marks={marks} />
      )}
    </section>
  );
}

function Changes({ before, after }: { before: Text; after: Text }) {
  const pieces = useMemo(() => diffWords(before[0], after[0]), [before, after]);
  return (
    <>
      <pre class="prose diff" dir="auto">
        {pieces.map(({ change, text }, at) =>
          change === "removed" ? (
            <del key={at}>{text}</del>
          ) : change === "added" ? (
            <ins key={at}>{text}</ins>
          ) : (
            <span key={at}>{text}</span>
          ),
        )}
      </pre>
      <Cut text={before[2] >= after[2] ? before : after} />
    </>
  );
}

function pick(texts: Texts, wanted: (name: string) => boolean): Texts {
  return Object.fromEntries(Object.entries(texts).filter(([name]) => wanted(name)));
}

const MARKED = ["answer", "answers", "reference", "references", "expected", "gold", "ground_truth"];

/** The expected answers worth looking for in other texts: those that are short. */
function expected(references: Texts): string[] {
  return MARKED.flatMap((name) => {
    const text = references[name];
    if (!text) return [];
    return text[1] ? (listed(text) ?? []) : [text[0]];
  })
    .filter((text) => text.length <= 200)
    .sort((a, b) => b.length - a.length);
}
