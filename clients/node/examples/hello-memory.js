// The shortest memory system: answer with the last thing said that shares a word with the question.
import { serve } from "cbench-client";

const wordsOf = (text) => new Set(text.toLowerCase().match(/[\p{L}\p{N}]{4,}/gu));

class LastMention {
  name = "last-mention";
  version = "1";
  turns = [];

  reset() {
    this.turns = [];
  }

  ingest(turns) {
    this.turns.push(...turns);
  }

  query(question) {
    const asked = wordsOf(question);
    const turn = this.turns.findLast(({ content }) => [...wordsOf(content)].some((word) => asked.has(word)));
    return turn?.content ?? "I do not know.";
  }
}

// The class, not an object: each conversation gets its own object.
await serve(LastMention);
