package cbench

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"google.golang.org/grpc/metadata"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

const (
	followDelay    = 100 * time.Millisecond
	followDelayMax = 2 * time.Second
)

// EvaluateOption configures [Client.Evaluate] and [Client.Start].
type EvaluateOption interface{ applyToEvaluate(*follower) }

// WatchOption configures [Client.Watch].
type WatchOption interface{ applyToWatch(*follower) }

// FollowOption configures all three.
type FollowOption func(*follower)

func (o FollowOption) applyToEvaluate(f *follower) { o(f) }
func (o FollowOption) applyToWatch(f *follower)    { o(f) }

type watchOption func(*follower)

func (o watchOption) applyToWatch(f *follower) { o(f) }

type evaluateOption func(*follower)

func (o evaluateOption) applyToEvaluate(f *follower) { o(f) }

// After skips events up to and including a sequence.
func After(sequence int64) WatchOption {
	return watchOption(func(f *follower) { f.last = sequence })
}

// OmitRows leaves rows out of the events.
func OmitRows() FollowOption {
	return func(f *follower) { f.omitRows = true }
}

// IncludeProcessed lets rows carry what the system returned.
func IncludeProcessed() WatchOption {
	return watchOption(func(f *follower) { f.includeProcessed = true })
}

// RequestID makes starting safe to repeat: the same id and spec give the same
// run. The default is a random one.
func RequestID(id string) EvaluateOption {
	return evaluateOption(func(f *follower) { f.requestID = id })
}

// ReconnectFor bounds how long the daemon may be away. By default there is no limit.
func ReconnectFor(limit time.Duration) FollowOption {
	return func(f *follower) { f.reconnectFor = limit }
}

// follower reads the events of one run through lost connections.
type follower struct {
	client           *Client
	spec             *pb.RunSpec
	requestID        string
	runID            string
	last             int64
	omitRows         bool
	includeProcessed bool
	reconnectFor     time.Duration
	hasFinished      bool
}

// eventStream is a stream of either method, message by message.
type eventStream struct {
	next    func() ([]*pb.RunEvent, error)
	trailer func() metadata.MD
}

// events yields events until the run has ended, or one error.
func (f *follower) events(ctx context.Context) iter.Seq2[*pb.RunEvent, error] {
	return func(yield func(*pb.RunEvent, error) bool) {
		alive, delay := time.Now(), followDelay
		for {
			err := f.stream(ctx, func(event *pb.RunEvent) bool {
				f.client.hasAnswered.Store(true)
				goesOn := yield(event, nil)
				// Time that the reader takes does not count as silence of the daemon.
				alive, delay = time.Now(), followDelay
				return goesOn
			})
			if errors.Is(err, errLeft) || f.hasFinished {
				return
			}
			if err == nil {
				var isOver bool
				if isOver, err = f.isOver(ctx); isOver {
					return
				}
			}
			if ctx.Err() != nil {
				yield(nil, ctx.Err())
				return
			}
			if err != nil && !f.mayWait(err, time.Since(alive)) {
				yield(nil, err)
				return
			}
			pause := time.NewTimer(delay)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				yield(nil, ctx.Err())
				return
			}
			delay = min(2*delay, followDelayMax)
		}
	}
}

var errLeft = errors.New("the reader left the loop")

// stream reads one stream to its end, and hands on the events that are new.
func (f *follower) stream(ctx context.Context, take func(*pb.RunEvent) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.open(ctx)
	if err != nil {
		return f.client.explained(err, nil)
	}
	for {
		events, err := stream.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.client.explained(err, stream.trailer())
		}
		for _, event := range events {
			// What arrived before the reader gave up is not wanted any more.
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if f.isNew(event) && !take(event) {
				return errLeft
			}
		}
	}
}

func (f *follower) open(ctx context.Context) (eventStream, error) {
	if f.runID == "" {
		request := &pb.EvaluateRequest{Spec: f.spec, RequestId: f.requestID, OmitRows: f.omitRows}
		stream, err := f.client.bench.Evaluate(ctx, request)
		if err != nil {
			return eventStream{}, err
		}
		return eventStream{func() ([]*pb.RunEvent, error) {
			message, err := stream.Recv()
			return message.GetEvents(), err
		}, stream.Trailer}, nil
	}
	stream, err := f.client.bench.WatchRun(ctx, &pb.WatchRunRequest{
		RunId: f.runID, AfterSequence: f.last, OmitRows: f.omitRows, IncludeProcessed: f.includeProcessed,
	})
	if err != nil {
		return eventStream{}, err
	}
	return eventStream{func() ([]*pb.RunEvent, error) {
		message, err := stream.Recv()
		return message.GetEvents(), err
	}, stream.Trailer}, nil
}

func (f *follower) isNew(event *pb.RunEvent) bool {
	if event.GetSequence() != 0 {
		if event.GetSequence() <= f.last {
			return false
		}
		f.last = event.GetSequence()
		// A run that is resumed goes on after it has finished.
		f.hasFinished = event.GetFinished() != nil
	}
	if event.GetAccepted() != nil {
		f.runID = event.GetAccepted().GetRunId()
	}
	return true
}

// isOver reports whether a run whose stream ended has no more to tell.
func (f *follower) isOver(ctx context.Context) (bool, error) {
	if f.runID == "" {
		return false, nil
	}
	run, err := f.client.Get(ctx, f.runID)
	if err != nil {
		return false, err
	}
	switch run.GetState() {
	case pb.RunState_RUN_STATE_SUCCEEDED, pb.RunState_RUN_STATE_FAILED, pb.RunState_RUN_STATE_CANCELLED:
		return run.GetLastSequence() <= f.last, nil
	}
	return false, nil
}

// mayWait decides whether an error may go away by itself. A daemon that has
// never answered is not waited for.
func (f *follower) mayWait(err error, silence time.Duration) bool {
	if !isLost(err) || !f.client.hasAnswered.Load() {
		return false
	}
	return f.reconnectFor == 0 || silence < f.reconnectFor
}
