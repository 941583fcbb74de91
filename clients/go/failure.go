package cbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// maxStackBytes bounds the stack trace of one failure.
const maxStackBytes = 16_000

// Origin is the party in which a failure arose.
type Origin string

// The origins of failures.
const (
	OriginSystem    Origin = "system"
	OriginEvaluator Origin = "evaluator"
	OriginTransport Origin = "transport"
	OriginDaemon    Origin = "daemon"
	OriginDataset   Origin = "dataset"
	OriginReader    Origin = "reader"
)

var origins = map[Origin]pb.FailureOrigin{
	OriginSystem:    pb.FailureOrigin_FAILURE_ORIGIN_SYSTEM,
	OriginEvaluator: pb.FailureOrigin_FAILURE_ORIGIN_EVALUATOR,
	OriginTransport: pb.FailureOrigin_FAILURE_ORIGIN_TRANSPORT,
	OriginDaemon:    pb.FailureOrigin_FAILURE_ORIGIN_DAEMON,
	OriginDataset:   pb.FailureOrigin_FAILURE_ORIGIN_DATASET,
	OriginReader:    pb.FailureOrigin_FAILURE_ORIGIN_READER,
}

// Failure says why one call gave no result. User code returns one, bare or
// wrapped, to choose what is reported; find one with [errors.As].
type Failure struct {
	// Origin is the party responsible. Empty means the component that returns it.
	Origin Origin
	// Reason is a stable UPPER_SNAKE_CASE identifier. Empty means UNSPECIFIED.
	Reason string
	// Message is one sentence for a person.
	Message string
	// Retryable says that the same call may succeed if made again.
	Retryable bool
	// RetryDelay is the least time to wait before that. Zero means no wish.
	RetryDelay time.Duration
	// StackTrace is where it happened.
	StackTrace string
	// Attempts counts the calls made before giving up.
	Attempts int
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s: %s", f.Reason, f.Message)
}

func (f *Failure) message() *pb.Failure {
	message := &pb.Failure{
		Origin:     origins[f.Origin],
		Reason:     strings.ToValidUTF8(f.Reason, "\uFFFD"),
		Message:    strings.ToValidUTF8(f.Message, "\uFFFD"),
		Retryable:  f.Retryable,
		StackTrace: strings.ToValidUTF8(f.StackTrace, "\uFFFD"),
		Attempts:   int32(min(f.Attempts, math.MaxInt32)),
	}
	if f.RetryDelay > 0 {
		message.RetryDelay = durationpb.New(f.RetryDelay)
	}
	return message
}

// DecodeFailure reads the failure of a row or a run, nil if there is none.
func DecodeFailure(message *pb.Failure) *Failure {
	if message == nil {
		return nil
	}
	failure := &Failure{
		Reason:     message.GetReason(),
		Message:    message.GetMessage(),
		Retryable:  message.GetRetryable(),
		RetryDelay: message.GetRetryDelay().AsDuration(),
		StackTrace: message.GetStackTrace(),
		Attempts:   int(message.GetAttempts()),
	}
	for origin, number := range origins {
		if number == message.GetOrigin() {
			failure.Origin = origin
		}
	}
	return failure
}

// failureOf turns an error that user code returned into a failure.
func failureOf(ctx context.Context, err error, origin Origin) *Failure {
	var failure *Failure
	if errors.As(err, &failure) {
		told := *failure
		if told.Origin == "" {
			told.Origin = origin
		}
		if told.Reason == "" {
			told.Reason = "UNSPECIFIED"
		}
		return &told
	}
	if ctx.Err() != nil {
		return ended(ctx, origin)
	}
	failure = &Failure{Origin: origin, Reason: "EXCEPTION", Message: err.Error()}
	// Errors that know where they were made show it when asked for detail.
	if detail := fmt.Sprintf("%+v", err); detail != failure.Message {
		failure.StackTrace = head(detail, maxStackBytes)
	}
	return failure
}

// ended tells why the caller no longer waits for a call.
func ended(ctx context.Context, origin Origin) *Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Failure{Origin: origin, Reason: "DEADLINE_EXCEEDED", Message: "no answer within the time the caller gave"}
	}
	return &Failure{Origin: origin, Reason: "CANCELLED", Message: "the caller gave up"}
}

func unencodable(err error, method string, origin Origin) *Failure {
	message := fmt.Sprintf("what %s returned cannot be sent: %v", method, err)
	return &Failure{Origin: origin, Reason: "UNENCODABLE_VALUE", Message: message}
}

func invalid(err error, origin Origin) *Failure {
	return &Failure{Origin: origin, Reason: "INVALID_ARGUMENT", Message: err.Error()}
}

func shuttingDown(origin Origin) *Failure {
	return &Failure{Origin: origin, Reason: "UNAVAILABLE", Message: "shutting down", Retryable: true}
}

// panicked describes what a panic carried, with the stack from where it began.
func panicked(value any, origin Origin) *Failure {
	message := fmt.Sprintf("panic: %v", value)
	return &Failure{Origin: origin, Reason: "EXCEPTION", Message: message, StackTrace: stackOfPanic()}
}

// stackOfPanic lists the frames of user code below a panic, innermost first. It
// works only in a deferred function, while the stack is still there.
func stackOfPanic() string {
	counters := make([]uintptr, 100)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	var text strings.Builder
	for below := false; ; {
		frame, more := frames.Next()
		switch {
		case strings.HasSuffix(frame.Function, ".(*offer).answer"):
			return head(text.String(), maxStackBytes)
		case strings.HasPrefix(frame.Function, "runtime."):
			below = true
		case below:
			fmt.Fprintf(&text, "%s\n\t%s:%d\n", frame.Function, frame.File, frame.Line)
		}
		if !more {
			return head(text.String(), maxStackBytes)
		}
	}
}

// head cuts text to a number of bytes, at the border of a character.
func head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
