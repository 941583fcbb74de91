// Command hello-memory serves a memory system that answers with the last turn
// that shares a word with the question.
package main

import (
	"context"
	"slices"
	"strings"

	cbench "github.com/cbench/cbench-server/clients/go"
)

type notes struct{ turns []cbench.Turn }

func (n *notes) Reset(context.Context) error { return nil }

func (n *notes) Ingest(_ context.Context, turns []cbench.Turn) (cbench.Ingested, error) {
	n.turns = append(n.turns, turns...)
	return cbench.Ingested{}, nil
}

func (n *notes) Query(_ context.Context, query cbench.Query) (cbench.Answer, error) {
	asked := words(query.Question)
	for _, turn := range slices.Backward(n.turns) {
		said := words(turn.Content)
		if slices.ContainsFunc(asked, func(word string) bool { return slices.Contains(said, word) }) {
			return cbench.Answer{Response: turn.Content, Context: &turn.Content}, nil
		}
	}
	return cbench.Answer{Response: "nothing"}, nil
}

// words returns the words of a text that are long enough to mean something.
func words(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" .,!?\n", r) })
	return slices.DeleteFunc(all, func(word string) bool { return len(word) < 4 })
}

func main() {
	cbench.Main(cbench.MemorySystem{
		Name: "notes", Version: "1", Description: "Answers with the last turn that shares a word with the question.",
		New: func(context.Context, string) (cbench.Memory, error) { return &notes{}, nil },
	})
}
