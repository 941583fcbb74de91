package cbench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
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
	// Violations are the fields of the request that are to blame; empty where the daemon does
	// not say.
	Violations []FieldViolation
}

// FieldViolation is a field of a request that is to blame.
type FieldViolation struct {
	// Field is its path, such as `spec.systems[1].options["ratio"]`.
	Field string
	// Description says why, for a person.
	Description string
}

func (e *RefusedError) Error() string { return e.Message }

// GRPCStatus is what [status.FromError] and [status.Code] find.
func (e *RefusedError) GRPCStatus() *status.Status { return status.New(e.Code, e.Message) }

// violationsIn reads what a status says of fields, as google.rpc.BadRequest.
func violationsIn(told *status.Status) []FieldViolation {
	var found []FieldViolation
	for _, detail := range told.Details() {
		if request, ok := detail.(*errdetails.BadRequest); ok {
			for _, each := range request.GetFieldViolations() {
				found = append(found, FieldViolation{each.GetField(), each.GetDescription()})
			}
		}
	}
	return found
}

// NotServableError says what a component lacks to be served.
type NotServableError struct {
	// Message is for a person.
	Message string
}

func (e *NotServableError) Error() string { return e.Message }

// notServable makes a [*NotServableError] in a sentence.
func notServable(format string, arguments ...any) error {
	return &NotServableError{fmt.Sprintf(format, arguments...)}
}

// CannotServeError says why an address cannot be served on, or not with that certificate and key.
type CannotServeError struct {
	// Message is for a person.
	Message string
	cause   error
}

func (e *CannotServeError) Error() string { return e.Message }

// Unwrap returns the error of the operating system, if there is one.
func (e *CannotServeError) Unwrap() error { return e.cause }

// cannotServe makes a [*CannotServeError] in a sentence, with the error it may wrap by %w.
func cannotServe(format string, arguments ...any) error {
	told := fmt.Errorf(format, arguments...)
	return &CannotServeError{told.Error(), errors.Unwrap(told)}
}

// InsecureTokenError says that a token would travel in the clear.
type InsecureTokenError struct {
	// Target is the address to dial.
	Target string
}

func (e *InsecureTokenError) Error() string {
	return fmt.Sprintf("a token for %s would travel unencrypted over the network; pass WithTLS", e.Target)
}

// UnreachableError says that no daemon answers at an address, or not in our protocol.
type UnreachableError struct {
	// Target is the address dialled.
	Target string
	cause  error
}

func (e *UnreachableError) Error() string {
	if status.Code(e.cause) == codes.Unimplemented {
		return fmt.Sprintf("a gRPC server answers at %s, but it has no such method: it is not a cbench daemon, or an older one. Check the address, or update the daemon", e.Target)
	}
	return fmt.Sprintf("no daemon answers at %s: %s. Is it running, and does it use TLS? Start one with: cbench-server",
		e.Target, status.Convert(e.cause).Message())
}

// Unwrap returns the gRPC error.
func (e *UnreachableError) Unwrap() error { return e.cause }

// Is lets [errors.Is] find [context.DeadlineExceeded] where time ran out: the
// caller's, or that of [WithTimeout].
func (e *UnreachableError) Is(target error) bool {
	return target == context.DeadlineExceeded && status.Code(e.cause) == codes.DeadlineExceeded
}

// GRPCStatus is what [status.FromError] and [status.Code] find.
func (e *UnreachableError) GRPCStatus() *status.Status { return status.Convert(e.cause) }

// Reason returns the stable UPPER_SNAKE_CASE identifier of an error of this
// package, the same in every SDK; "" for any other error.
func Reason(err error) string {
	var (
		refused     *RefusedError
		failure     *Failure
		unreachable *UnreachableError
		unencodable *UnencodableError
		notServable *NotServableError
		cannotServe *CannotServeError
		insecure    *InsecureTokenError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Reason
	case errors.As(err, &failure):
		return failure.Reason
	case errors.As(err, &unreachable):
		return "UNREACHABLE"
	case errors.As(err, &unencodable):
		return "UNENCODABLE_VALUE"
	case errors.As(err, &notServable):
		return "NOT_SERVABLE"
	case errors.As(err, &cannotServe):
		return "CANNOT_SERVE"
	case errors.As(err, &insecure):
		return "INSECURE_TOKEN"
	}
	return ""
}

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
	} else if told.Code() == codes.Unimplemented {
		// A gRPC server, and no daemon.
		return &UnreachableError{Target: c.target, cause: err}
	}
	message := told.Message()
	if told.Code() == codes.Unauthenticated {
		message = c.target + " wants a token and none was given. Pass WithToken."
		if c.hasToken {
			message = c.target + " refused the token it was given. Check the token."
		}
	}
	return &RefusedError{Code: told.Code(), Reason: reason, Message: message, Violations: violationsIn(told)}
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
