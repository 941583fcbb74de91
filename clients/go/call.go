package cbench

import "context"

// Call is what user code may know about the call it answers, besides its context.
type Call struct {
	// ID is the same for every retry of this call, and unique otherwise. It may be empty.
	ID string
	// Options are the settings of this run, such as a target compression rate.
	Options map[string]any
}

type callKey struct{}

// CallOf returns the call that a context was made for, the zero Call outside of one.
func CallOf(ctx context.Context) Call {
	call, _ := ctx.Value(callKey{}).(Call)
	return call
}

func withCall(ctx context.Context, id string, options map[string]any) context.Context {
	return context.WithValue(ctx, callKey{}, Call{ID: id, Options: options})
}
