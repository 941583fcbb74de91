package main

import (
	"context"
	"errors"

	cbench "github.com/cbench/cbench-server/clients/go"
)

func evaluators(p *probe) []cbench.Evaluator {
	furthest := 100.0
	return []cbench.Evaluator{
		{
			Name: "conformance-score", Description: "Scores as it is told.", MaxConcurrency: 16, TakesOptions: true,
			Scores: []cbench.ScoreInfo{
				{Name: "exact", Description: "Whether the response is the answer."},
				{Name: "distance", Description: "How far it is.", LowerIsBetter: true, Worst: &furthest},
			},
			RequiredFields: []string{"answer"},
			Score:          p.score,
		},
		{
			Name: "conformance-plain", Description: "Takes no options.",
			Scores: []cbench.ScoreInfo{{Name: "one", Description: "Always one."}},
			Score: func(context.Context, cbench.Example, cbench.Example) (cbench.Assessment, error) {
				return cbench.Assessment{Scores: map[string]float64{"one": 1}}, nil
			},
		},
	}
}

func (p *probe) score(ctx context.Context, original, processed cbench.Example) (cbench.Assessment, error) {
	switch processed.Text("command") {
	case "scores":
		return cbench.Assessment{Scores: numbers(processed.Get("scores"))}, nil
	case "fail":
		failure := &cbench.Failure{Reason: processed.Text("reason"), Message: processed.Text("message")}
		return cbench.Assessment{}, failure
	case "error":
		return cbench.Assessment{}, errors.New(processed.Text("message"))
	case "panic":
		conformancePanic(processed.Text("message"))
	case "hold":
		_, err := p.hold(ctx, processed.Text("key"), defaultHold)
		return cbench.Assessment{Scores: map[string]float64{"exact": 1}}, err
	}
	return compare(ctx, original, processed), nil
}

func compare(ctx context.Context, original, processed cbench.Example) cbench.Assessment {
	call := cbench.CallOf(ctx)
	details := map[string]any{"options": call.Options}
	if call.Traceparent != "" {
		details["traceparent"], details["tracestate"] = call.Traceparent, call.Tracestate
	}
	if value, ok := processed.Lookup("value"); ok {
		details["value"] = value
	}
	if original.ID() != nil {
		details["original_id"] = original.ID()
	}
	if _, ok := original.Lookup("answer"); !ok {
		return cbench.Assessment{Details: details}
	}
	exact := 0.0
	if processed.Response() == original.Text("answer") {
		exact = 1
	}
	return cbench.Assessment{Scores: map[string]float64{"exact": exact}, Explanation: "compared", Details: details}
}

// numbers reads a map of scores; null means that one is left out.
func numbers(value any) map[string]float64 {
	scores := map[string]float64{}
	fields, _ := value.(map[string]any)
	for name, value := range fields {
		switch value := value.(type) {
		case int64:
			scores[name] = float64(value)
		case float64:
			scores[name] = value
		}
	}
	return scores
}
