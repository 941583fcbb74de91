"""A system in Go, with its standard library."""

from cbench_server.cli.starters.starter import Starter

_SYSTEM = """\
// A system: keep the sentences that share a word with the question.
// A request per line comes in, an answer per line goes out; stderr is for people.
package main

import (
	"encoding/json"
	"log"
	"os"
	"strings"
)

type message struct {
	ID      json.RawMessage `json:"id"`
	Example map[string]any  `json:"example"`
}

func process(example map[string]any) {
	context, _ := example["context"].(string)
	question, _ := example["question"].(string)
	var kept []string
	for _, sentence := range strings.SplitAfter(context, ". ") {
		for _, word := range strings.Fields(question) {
			if len(word) > 3 && strings.Contains(sentence, strings.Trim(word, "?,.")) {
				kept = append(kept, sentence)
				break
			}
		}
	}
	example["context"] = strings.Join(kept, "")
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var asked message
		if err := in.Decode(&asked); err != nil {
			log.Fatal(err)
		}
		process(asked.Example)
		if err := out.Encode(asked); err != nil {
			log.Fatal(err)
		}
	}
}
"""
_TEST = """\
package main

import "testing"

func TestItKeepsWhatIsAskedAbout(t *testing.T) {
	example := map[string]any{
		"context":  "Tea is hot. The bridge is old.",
		"question": "Is the bridge old?",
	}
	process(example)
	if example["context"] != "The bridge is old." {
		t.Fatalf("got: %v", example["context"])
	}
}
"""

STARTER = Starter(
    files={
        "main.go": _SYSTEM,
        "main_test.go": _TEST,
        "go.mod": "module example.com/mine\n\ngo 1.21\n",
    },
    command="./mine",
    test="go test ./...",
    build="go build -o mine .",
    tools=("go",),
)
