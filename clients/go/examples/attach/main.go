// Command attach offers a system to a daemon that cannot dial this process:
//
//	go run ./examples/attach -daemon 127.0.0.1:50051
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	cbench "github.com/cbench/cbench-server/clients/go"
)

// firstWords keeps the first words of the context.
func firstWords(ctx context.Context, example cbench.Example) (cbench.Example, error) {
	most, ok := cbench.CallOf(ctx).Options["words"].(int64)
	if !ok {
		most = 100
	}
	words := strings.Fields(example.Context())
	if most < 0 {
		return example, fmt.Errorf("words is %d; it must not be negative", most)
	}
	return example.With("context", strings.Join(words[:min(int(most), len(words))], " ")), nil
}

func main() {
	daemon := flag.String("daemon", "127.0.0.1:50051", "where cbench-server listens")
	token := flag.String("token", "", "the bearer token it wants")
	flag.Parse()
	system := cbench.System{
		Name: "first-words", Version: "1", Description: "Keeps the first words of the context.",
		MaxConcurrency: 16, Process: firstWords,
	}
	if err := cbench.Attach(context.Background(), *daemon, system, cbench.WithToken(*token)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
