package main

import (
	"context"
	"math"
	"strings"
	"testing"

	cbench "github.com/cbench/cbench-server/clients/go"
)

const text = `The town has a river. Its bridge was built in 1931! Who built it?
Anna Berg designed the bridge. Bakers sell bread on Sundays. "Stop!" said Tom. Cats sleep.`

func TestATextIsSplitAtTheEndsOfSentences(t *testing.T) {
	want := []string{
		"The town has a river.", "Its bridge was built in 1931!", "Who built it?",
		"Anna Berg designed the bridge.", "Bakers sell bread on Sundays.", `"Stop!"`, "said Tom.", "Cats sleep.",
	}
	if got := Sentences(text); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
	if got := Sentences("pi is 3.14 today\n\n  end"); strings.Join(got, "|") != "pi is 3.14 today|end" {
		t.Errorf("got %q", got)
	}
}

func TestTheSentencesThatFitTheQuestionAreKeptInOrder(t *testing.T) {
	got := Compress(text, "Who designed the bridge, and when was it built?", 0.5)
	want := "Its bridge was built in 1931! Who built it? Anna Berg designed the bridge."
	if got != want {
		t.Errorf("got %q", got)
	}
}

func TestNoMoreWordsAreKeptThanTheRatioAllows(t *testing.T) {
	total := len(Words(text))
	for _, ratio := range []float64{0.2, 0.4, 0.6, 0.8, 1} {
		kept := len(Words(Compress(text, "the bridge was built by bakers on Sundays", ratio)))
		if float64(kept) > ratio*float64(total) {
			t.Errorf("%d of %d words at a ratio of %v", kept, total, ratio)
		}
	}
}

func TestAtLeastTheBestSentenceIsKept(t *testing.T) {
	if got := Compress(text, "what did Anna Berg design", 0); got != "Anna Berg designed the bridge." {
		t.Errorf("got %q", got)
	}
}

func TestWithoutAQuestionTheStartIsKept(t *testing.T) {
	if got := Compress(text, "", 0.5); !strings.HasPrefix(got, "The town has a river. Its bridge") {
		t.Errorf("got %q", got)
	}
}

func TestATextWithoutSentencesStaysAsItIs(t *testing.T) {
	for _, empty := range []string{"", " \n "} {
		if got := Compress(empty, "why", 0.5); got != empty {
			t.Errorf("got %q", got)
		}
	}
}

func TestARareWordOutweighsACommonOne(t *testing.T) {
	documents := [][]string{{"the", "cat"}, {"the", "dog"}, {"the", "bird"}}
	scores := Scores(documents, []string{"the", "dog"})
	if !(scores[1] > scores[0] && scores[0] == scores[2] && scores[0] > 0) {
		t.Errorf("got %v", scores)
	}
}

func TestTheRatioIsANumberFromZeroToOne(t *testing.T) {
	for _, bad := range []any{1.5, -0.1, math.NaN(), "half", int64(2)} {
		if _, err := ratioOf(map[string]any{"ratio": bad}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	for want, options := range map[float64]map[string]any{defaultRatio: {}, 1: {"ratio": int64(1)}, 0.25: {"ratio": 0.25}} {
		if got, err := ratioOf(options); err != nil || got != want {
			t.Errorf("%v gave %v, %v", options, got, err)
		}
	}
}

func TestOnlyTheContextChanges(t *testing.T) {
	example := cbench.NewExample(map[string]any{"id": int64(1), "context": text, "question": "Who designed the bridge?"})
	processed, err := process(context.Background(), example)
	if err != nil {
		t.Fatal(err)
	}
	if processed.ID() != int64(1) || processed.Question() != example.Question() || len(processed.Context()) >= len(text) {
		t.Errorf("got %v", processed.Fields())
	}
}
