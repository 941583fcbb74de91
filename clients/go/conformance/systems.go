package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	cbench "github.com/cbench/cbench-server/clients/go"
)

type processFunc = func(context.Context, cbench.Example) (cbench.Example, error)

// returns makes a process that needs only the example.
func returns(process func(cbench.Example) (map[string]any, error)) processFunc {
	return func(_ context.Context, example cbench.Example) (cbench.Example, error) {
		fields, err := process(example)
		return cbench.NewExample(fields), err
	}
}

// settings are the options of one system, with the defaults in its value.
type settings struct {
	K     int64   `required:"true"`
	Ratio float64 `help:"The share to keep." min:"0" max:"1"`
	Mode  string  `enum:"fast,good"`
	Limit *int64
}

func tellOptions(ctx context.Context, _ cbench.Example) (cbench.Example, error) {
	options := cbench.OptionsOf[settings](ctx)
	told := map[string]any{"k": options.K, "ratio": options.Ratio, "mode": options.Mode, "limit": nil}
	if options.Limit != nil {
		told["limit"] = *options.Limit
	}
	return cbench.NewExample(told), nil
}

func systems(p *probe) []cbench.System {
	limit := int64(3)
	hold := func(ctx context.Context, example cbench.Example) (cbench.Example, error) {
		milliseconds, ok := example.Get("milliseconds").(int64)
		if !ok {
			milliseconds = defaultHold
		}
		outcome, err := p.hold(ctx, example.Text("key"), milliseconds)
		return cbench.NewExample(map[string]any{"response": outcome, "key": example.Text("key")}), err
	}
	return []cbench.System{
		{Name: "conformance-echo", Description: "Returns the example with a response.", Process: echo},
		{Name: "conformance-copy", Description: "Copies every field.", Process: copyFields},
		{Name: "conformance-report", Description: "Reports what it knows of the call.", Process: report},
		{Name: "conformance-hold", MaxConcurrency: 64, Description: "Waits to be released.", Process: hold},
		{Name: "conformance-limited", MaxConcurrency: 2, Description: "Waits to be released, two at a time.", Process: hold},
		{Name: "conformance-probe", Description: "Tells what happened under a key.", Process: returns(p.tell)},
		{Name: "conformance-fail", Description: "Fails as it is told.", Process: returns(fail)},
		{Name: "conformance-error", Description: "Raises an ordinary error.", Process: returns(raise)},
		{Name: "conformance-panic", Description: "Panics.", Process: returns(panics)},
		{Name: "conformance-deep", Description: "Nests lists.", Process: returns(deep)},
		{Name: "conformance-large", Description: "Returns a large text.", Process: returns(large)},
		{Name: "conformance-usage", Description: "Reports usage.", Process: usage},
		{
			Name: "conformance-options", Description: "Takes the options that it declares.",
			Options: settings{Ratio: 0.5, Mode: "good", Limit: &limit}, Process: tellOptions,
		},
		{
			Name: "conformance-chat", Description: "Answers conversations.",
			Process: returns(func(cbench.Example) (map[string]any, error) {
				return map[string]any{"response": "process"}, nil
			}),
			ProcessConversation: chat,
		},
	}
}

func echo(_ context.Context, example cbench.Example) (cbench.Example, error) {
	return example.With("response", "echo"), nil
}

func copyFields(ctx context.Context, example cbench.Example) (cbench.Example, error) {
	copied := map[string]any{}
	for name, value := range example.Fields() {
		copied["copy."+name] = value
	}
	for name, value := range cbench.CallOf(ctx).Options {
		copied["option."+name] = value
	}
	return cbench.NewExample(copied), nil
}

func report(ctx context.Context, _ cbench.Example) (cbench.Example, error) {
	call := cbench.CallOf(ctx)
	known := map[string]any{"call_id": call.ID, "remaining_ms": nil, "instruction": call.Instruction}
	known["traceparent"], known["tracestate"] = call.Traceparent, call.Tracestate
	if deadline, ok := ctx.Deadline(); ok {
		known["remaining_ms"] = time.Until(deadline).Milliseconds()
	}
	return cbench.NewExample(known), nil
}

func (p *probe) tell(example cbench.Example) (map[string]any, error) {
	if example.Get("release") == true {
		p.release(example.Text("key"))
	}
	return p.read(example.Text("key")), nil
}

func fail(example cbench.Example) (map[string]any, error) {
	delay, _ := example.Get("retry_delay_ms").(int64)
	return nil, &cbench.Failure{
		Reason: example.Text("reason"), Message: example.Text("message"),
		Retryable: example.Get("retryable") == true, RetryDelay: time.Duration(delay) * time.Millisecond,
	}
}

func raise(example cbench.Example) (map[string]any, error) {
	return nil, errors.New(example.Text("message"))
}

func panics(example cbench.Example) (map[string]any, error) {
	conformancePanic(example.Text("message"))
	return nil, nil
}

//go:noinline
func conformancePanic(message string) { panic(message) }

func deep(example cbench.Example) (map[string]any, error) {
	levels, _ := example.Get("levels").(int64)
	nested := []any{}
	for range levels - 1 {
		nested = []any{nested}
	}
	return map[string]any{"deep": nested}, nil
}

func large(example cbench.Example) (map[string]any, error) {
	size, _ := example.Get("size").(int64)
	return map[string]any{"context": strings.Repeat("x", int(size))}, nil
}

func usage(context.Context, cbench.Example) (cbench.Example, error) {
	used := cbench.NewExample(map[string]any{"response": "used"})
	return used.WithUsage(cbench.Usage{
		PromptTokens: cbench.Tokens(9007199254740993), CachedPromptTokens: cbench.Tokens(7), Requests: cbench.Tokens(3), AbandonedRequests: cbench.Tokens(1),
		CompletionTokens: cbench.Tokens(0),
		CostUSD:          cbench.Dollars(0.25), ComputeTime: 1500 * time.Millisecond,
	}), nil
}

func chat(ctx context.Context, turns []cbench.Turn, _ cbench.Example) ([]cbench.Turn, error) {
	replies := make([]cbench.Turn, len(turns))
	for position, turn := range turns {
		fields := maps.Clone(turn.Fields)
		if told := cbench.CallOf(ctx).Instruction; told != "" {
			if fields == nil {
				fields = map[string]any{}
			}
			fields["instruction"] = told
		}
		replies[position] = cbench.Turn{
			Role: "assistant", Content: fmt.Sprintf("%d: %s", position+1, turn.Content),
			Speaker: turn.Speaker, Fields: fields,
		}
	}
	return replies, nil
}
