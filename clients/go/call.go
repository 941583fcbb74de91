package cbench

import "context"

// Call is what user code may know about the call it answers, besides its context.
type Call struct {
	// ID is the same for every retry of this call, and unique otherwise. It may be empty.
	ID string
	// Options are the settings of this run, such as a target compression rate.
	Options map[string]any
	// Instruction is what the dataset asks of whoever answers: the task, its labels and the
	// form of an answer. It may be empty, and counts in no token ratio.
	Instruction string
}

type callKey struct{}

// CallOf returns the call that a context was made for, the zero Call outside of one.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

func withCall(ctx context.Context, call Call) context.Context {
	return context.WithValue(ctx, callKey{}, call)
}
