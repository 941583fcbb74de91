// Command drive starts a run on a daemon, follows it, and prints what came of it:
//
//	go run ./examples/drive -daemon 127.0.0.1:50051
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	cbench "github.com/cbench/cbench-server/clients/go"
	"github.com/cbench/cbench-server/clients/go/cbenchpb"
)

func main() {
	daemon := flag.String("daemon", "127.0.0.1:50051", "where cbench-server listens")
	ratio := flag.Float64("ratio", 0.3, "how much of the context to keep")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *daemon, *ratio); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, daemon string, ratio float64) error {
	client, err := cbench.NewClient(daemon)
	if err != nil {
		return err
	}
	defer client.Close()
	options, err := cbench.EncodeFields(map[string]any{"ratio": ratio})
	if err != nil {
		return err
	}
	spec := &cbenchpb.RunSpec{
		Systems: []*cbenchpb.SystemRef{
			{Location: &cbenchpb.SystemRef_Builtin{Builtin: "truncate-tail"}, Options: options},
		},
		Datasets: []*cbenchpb.DatasetRef{{Name: "long-notes"}},
		Labels:   map[string]string{"started-by": "go"},
	}
	rows := 0
	for event, err := range client.Evaluate(ctx, spec) {
		if err != nil {
			return err
		}
		if event.GetRow() != nil {
			rows++
		}
		if finished := event.GetFinished(); finished != nil {
			report(finished, rows)
		}
	}
	return nil
}

func report(run *cbenchpb.Run, rows int) {
	fmt.Printf("%s %s, %d rows\n", run.GetRunId(), run.GetState(), rows)
	for _, summary := range run.GetSummaries() {
		fmt.Printf("%s: mean score %.3f\n", summary.GetSystem(), summary.GetMetrics()["mean_score"])
	}
	if failure := cbench.DecodeFailure(run.GetFailure()); failure != nil {
		fmt.Println(failure)
	}
}
