package cbench

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// RefusedError says why a daemon declined a request.
type RefusedError struct {
	// Code is the gRPC status.
	Code codes.Code
	// Reason is the stable identifier to branch on, such as `UNKNOWN_DATASET`.
	Reason string
	// Message is for a person.
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// UnreachableError says that no daemon answers at an address, or not in our protocol.
type UnreachableError struct {
	// Target is the address dialled.
	Target string
	cause  error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no daemon answers at %s: %s. Is it running, and does it use TLS? Start one with: cbench-server",
		e.Target, status.Convert(e.cause).Message())
}

// Unwrap returns the gRPC error.
func (e *UnreachableError) Unwrap() error { return e.cause }

// explained reads the status of a request to a daemon.
func (c *Client) explained(err error, trailer metadata.MD) error {
	told := status.Convert(err)
	switch told.Code() {
	case codes.Unavailable, codes.DeadlineExceeded:
		return &UnreachableError{Target: c.target, cause: err}
	case codes.Canceled:
		return err
	case codes.Internal:
		if strings.Contains(told.Message(), "RST_STREAM") {
			return &UnreachableError{Target: c.target, cause: err}
		}
	}
	reason := codeName(told.Code())
	if named := trailer.Get("cbench-reason"); len(named) > 0 {
		reason = named[0]
	}
	message := told.Message()
	switch told.Code() {
	case codes.Unauthenticated:
		message = fmt.Sprintf("%s wants a token, and the one given does not do: %s. Pass WithToken.", c.target, message)
	case codes.Unimplemented:
		message = fmt.Sprintf("%s does not offer this; is it a cbench-server? %s", c.target, message)
	}
	return &RefusedError{Code: told.Code(), Reason: reason, Message: message}
}

// isLost reports whether the connection broke, rather than the daemon declining.
func isLost(err error) bool {
	var unreachable *UnreachableError
	return errors.As(err, &unreachable)
}

// codeName spells a code as the protocol does: DEADLINE_EXCEEDED.
func codeName(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	var name strings.Builder
	for position, letter := range code.String() {
		if position > 0 && letter >= 'A' && letter <= 'Z' && code != codes.OK {
			name.WriteByte('_')
		}
		name.WriteRune(letter)
	}
	return strings.ToUpper(name.String())
}
