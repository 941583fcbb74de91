package cbench

import (
	"context"
	"regexp"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Peers refuse more than 8 kB of metadata, and text may triple on the way.
const (
	maxDetailBytes        = 500
	maxTrailingStackBytes = 2_500
)

var reasonShape = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,99}$`)

var codesByReason = map[string]codes.Code{
	"UNKNOWN_SYSTEM":      codes.NotFound,
	"UNKNOWN_EVALUATOR":   codes.NotFound,
	"INVALID_ARGUMENT":    codes.InvalidArgument,
	"ALREADY_EXISTS":      codes.AlreadyExists,
	"RESOURCE_EXHAUSTED":  codes.ResourceExhausted,
	"FAILED_PRECONDITION": codes.FailedPrecondition,
	"DEADLINE_EXCEEDED":   codes.DeadlineExceeded,
	"CANCELLED":           codes.Canceled,
	"UNIMPLEMENTED":       codes.Unimplemented,
	"UNAVAILABLE":         codes.Unavailable,
}

// statusOf turns a failure into the status of its call, and sets the trailers
// that carry the failure itself.
func statusOf(ctx context.Context, failure *Failure) error {
	code, known := codesByReason[failure.Reason]
	if !known && failure.Retryable {
		code = codes.Unavailable
	} else if !known {
		code = codes.Internal
	}
	message := failure.message()
	message.Message = head(message.GetMessage(), maxDetailBytes)
	message.StackTrace = head(message.GetStackTrace(), maxTrailingStackBytes)
	trailers := metadata.MD{}
	if reasonShape.MatchString(message.GetReason()) {
		trailers.Set("cbench-reason", message.GetReason())
	} else {
		message.Reason = head(message.GetReason(), 100)
	}
	if encoded, err := proto.Marshal(message); err == nil {
		trailers.Set("cbench-failure-bin", string(encoded))
	}
	if failure.RetryDelay > 0 {
		milliseconds := failure.RetryDelay.Round(time.Millisecond).Milliseconds()
		trailers.Set("grpc-retry-pushback-ms", strconv.FormatInt(milliseconds, 10))
	}
	// It fails only outside of a call.
	_ = grpc.SetTrailer(ctx, trailers)
	return status.Error(code, message.GetMessage())
}
