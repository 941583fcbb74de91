package cbench

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// Call is what user code may know about the call it answers, besides its context.
type Call struct {
	// ID is the same for every retry of this call, and unique otherwise. It may be empty.
	ID string
	// Options are the settings of this run, such as a target compression rate.
	Options map[string]any
	// Instruction is what the dataset asks of whoever answers: the task, its labels and the
	// form of an answer. It may be empty, and counts in no token ratio.
	Instruction string
	// Traceparent is the W3C trace context of the call, for the spans that user code
	// makes. Empty means that nobody traces it.
	Traceparent string
	// Tracestate is what vendors add to Traceparent. It may be empty.
	Tracestate string
}

type callKey struct{}

// CallOf returns the call that a context was made for, the zero Call outside of one.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

func withCall(ctx context.Context, call Call) context.Context {
	trace := traceOf(ctx)
	call.Traceparent, call.Tracestate = trace.parent, trace.state
	return context.WithValue(ctx, callKey{}, call)
}

type traceKey struct{}

// trace is the W3C trace context of a call.
type trace struct{ parent, state string }

// traced is a call of a stream.
type traced interface {
	GetTraceparent() string
	GetTracestate() string
}

// withTrace notes the trace context of one call of a stream, whose metadata
// all calls share.
func withTrace(ctx context.Context, call traced) context.Context {
	return context.WithValue(ctx, traceKey{}, trace{call.GetTraceparent(), call.GetTracestate()})
}

func traceOf(ctx context.Context) trace {
	if told, isStreamed := ctx.Value(traceKey{}).(trace); isStreamed {
		return told
	}
	told := func(key string) string {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	}
	return trace{told("traceparent"), told("tracestate")}
}
