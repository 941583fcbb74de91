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
}

type callKey struct{}

// CallOf returns the call that a context was made for, the zero Call outside of one.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

func withCall(ctx context.Context, call Call) context.Context {
	call.Traceparent = traceparentOf(ctx)
	return context.WithValue(ctx, callKey{}, call)
}

type traceKey struct{}

// withTraceparent notes the trace context of one call of a stream, whose
// metadata all calls share.
func withTraceparent(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

func traceparentOf(ctx context.Context) string {
	if traceparent, isStreamed := ctx.Value(traceKey{}).(string); isStreamed {
		return traceparent
	}
	if told := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(told) > 0 {
		return told[0]
	}
	return ""
}
