// Command hello-evaluator serves an evaluator that compares lengths.
package main

import (
	"context"

	cbench "github.com/cbench/cbench-server/clients/go"
)

func sameLength(_ context.Context, original, processed cbench.Example) (cbench.Assessment, error) {
	if _, ok := original.Lookup("answer"); !ok {
		return cbench.Assessment{}, nil
	}
	same := 0.0
	if len(original.Text("answer")) == len(processed.Response()) {
		same = 1
	}
	return cbench.Assessment{Scores: map[string]float64{"same_length": same}}, nil
}

func main() {
	cbench.Main(cbench.Evaluator{
		Name: "same-length", Version: "1", Description: "Whether answer and response are equally long.",
		Scores:         []cbench.ScoreInfo{{Name: "same_length", Description: "1 if they are, else 0."}},
		RequiredFields: []string{"answer"}, Score: sameLength,
	})
}
