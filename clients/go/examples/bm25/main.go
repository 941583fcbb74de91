// Command bm25 serves a compressor that keeps the sentences which fit the
// question best. The option `ratio` says how many of the words to keep (0.3).
package main

import (
	"context"
	"fmt"

	cbench "github.com/cbench/cbench-server/clients/go"
)

const defaultRatio = 0.3

// ratioOf reads how many of the words to keep.
func ratioOf(options map[string]any) (float64, error) {
	ratio := defaultRatio
	switch given := options["ratio"].(type) {
	case nil:
	case float64:
		ratio = given
	case int64:
		ratio = float64(given)
	default:
		ratio = -1
	}
	// Written so that NaN is refused, too.
	if !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("ratio is %v; it must be a number from 0 to 1", options["ratio"])
	}
	return ratio, nil
}

func process(ctx context.Context, example cbench.Example) (cbench.Example, error) {
	ratio, err := ratioOf(cbench.CallOf(ctx).Options)
	if err != nil {
		return cbench.Example{}, err
	}
	return example.With("context", Compress(example.Context(), example.Question(), ratio)), nil
}

func main() {
	cbench.Main(cbench.System{
		Name: "go-bm25", Version: "1", Process: process,
		Description: "Keeps the sentences that fit the question best, by BM25.",
	})
}
