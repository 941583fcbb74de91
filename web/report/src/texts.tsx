import type { ComponentChildren } from "preact";
import type { Text, Texts } from "./data";
import { count } from "./numbers";

/** A text as it came, with a note where the page holds only its beginning. */
export function Prose({ text, marks = [] }: { text: Text; marks?: string[] }) {
  const [characters, isJson] = text;
  const items = listed(text);
  if (items) {
    return (
      <ul class="prose list" dir="auto">
        {items.map((item, at) => (
          <li key={at}>{item}</li>
        ))}
      </ul>
    );
  }
  return (
    <>
      <pre class={isJson && /[[{]/.test(characters) ? "prose json" : "prose"} dir="auto">
        {marked(characters, marks)}
      </pre>
      <Cut text={text} />
    </>
  );
}

/** The items of a list of texts, which read better as lines than as JSON. */
export function listed([characters, isJson, cut]: Text): string[] | null {
  if (!isJson || cut || !characters.startsWith("[")) return null;
  const value: unknown = JSON.parse(characters);
  const isTexts = Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string");
  return isTexts ? (value as string[]) : null;
}

export function Cut({ text: [, , cut] }: { text: Text }) {
  return cut > 0 ? <p class="cut">{count(cut)} more characters are not in this page.</p> : null;
}

/** Short values next to their names, long ones below. */
export function Fields({ texts }: { texts: Texts }) {
  return (
    <dl class="fields">
      {Object.entries(texts).map(([name, text]) => (
        <div key={name} class={isLong(text) ? "long" : ""}>
          <dt>{name}</dt>
          <dd>
            <Prose text={text} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function isLong(text: Text): boolean {
  const items = listed(text);
  return items ? items.join("").length > 120 : text[0].length > 60 || text[0].includes("\n");
}

/** Highlights every occurrence of the wanted words, in any case. */
function marked(characters: string, wanted: string[]): ComponentChildren {
  const patterns = wanted.filter((word) => word.trim().length > 1).map(escape);
  if (patterns.length === 0) return characters;
  const parts = characters.split(new RegExp(`(${patterns.join("|")})`, "giu"));
  return parts.map((part, at) => (at % 2 ? <mark key={at}>{part}</mark> : part));
}

function escape(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}
