package cbench

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// uploadBytes bounds one message of an upload.
const uploadBytes = 1 << 20

// Client drives one daemon: it starts runs, follows them, and reads their rows.
// Runs, rows and events are the protocol's own messages. It may be shared by
// goroutines.
//
// Errors are a [*RefusedError] for what the daemon declines, a wrong token included, an
// [*UnreachableError] if it cannot be reached or does not answer in time, and
// [context.Canceled] if the caller's context was cancelled. [errors.Is] finds
// [context.DeadlineExceeded], [status.Code] the gRPC code, [Reason] the reason.
type Client struct {
	target      string
	hasToken    bool
	timeout     time.Duration
	connection  *grpc.ClientConn
	bench       pb.BenchClient
	evaluator   pb.EvaluatorClient
	hasAnswered atomic.Bool
}

// NewClient makes a client of the daemon at target, such as "127.0.0.1:50051".
// Nothing is sent before the first request. Several daemons of one store are named
// with commas, "host:a,host:b": the first that answers is used, and when it is lost
// the next.
func NewClient(target string, options ...ClientOption) (*Client, error) {
	s := &settings{timeout: 30 * time.Second}
	for _, option := range options {
		option.applyToClient(s)
	}
	connection, err := dial(target, s)
	if err != nil {
		return nil, err
	}
	return &Client{
		target: target, hasToken: s.token != "", timeout: s.timeout, connection: connection,
		bench: pb.NewBenchClient(connection), evaluator: pb.NewEvaluatorClient(connection),
	}, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.connection.Close() }

// Evaluate starts a run and follows it to its end.
//
// A lost connection is resumed where it broke, until ctx ends: every
// stored event comes once and in order. Leaving the loop does not stop the run.
func (c *Client) Evaluate(ctx context.Context, spec *pb.RunSpec, options ...EvaluateOption) iter.Seq2[*pb.RunEvent, error] {
	f := &follower{client: c, spec: spec, requestID: rand.Text()}
	for _, option := range options {
		option.applyToEvaluate(f)
	}
	return f.events(ctx)
}

// Watch follows a run to its end; otherwise as [Client.Evaluate].
func (c *Client) Watch(ctx context.Context, runID string, options ...WatchOption) iter.Seq2[*pb.RunEvent, error] {
	f := &follower{client: c, runID: runID}
	for _, option := range options {
		option.applyToWatch(f)
	}
	return f.events(ctx)
}

// Start starts a run, and returns its id without following it.
func (c *Client) Start(ctx context.Context, spec *pb.RunSpec, options ...EvaluateOption) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for event, err := range c.Evaluate(ctx, spec, append(options, OmitRows())...) {
		if err != nil {
			return "", err
		}
		if event.GetAccepted() != nil {
			return event.GetAccepted().GetRunId(), nil
		}
	}
	return "", &RefusedError{Reason: "INTERNAL", Message: c.target + " took the run and never named it."}
}

// Get gets a run.
func (c *Client) Get(ctx context.Context, runID string) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.GetRun, &pb.GetRunRequest{RunId: runID})
	return response.GetRun(), err
}

// List lists runs, newest first, without their configuration. Labels and states
// narrow the list; nil means any.
func (c *Client) List(ctx context.Context, labels map[string]string, states ...pb.RunState) iter.Seq2[*pb.Run, error] {
	return c.Runs(ctx, &pb.ListRunsRequest{Labels: labels, States: states})
}

// Runs lists runs as [Client.List] does, by all that a request can say, such as Mine.
func (c *Client) Runs(ctx context.Context, asked *pb.ListRunsRequest) iter.Seq2[*pb.Run, error] {
	return func(yield func(*pb.Run, error) bool) {
		asked := proto.CloneOf(asked)
		for {
			page, err := request(ctx, c, c.bench.ListRuns, asked)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, run := range page.GetRuns() {
				if !yield(run, nil) {
					return
				}
			}
			if asked.PageToken = page.GetNextPageToken(); asked.PageToken == "" {
				return
			}
		}
	}
}

// Rows lists the rows of a run, by system and then in dataset order. What the
// request leaves out means all rows, without originals and outputs.
func (c *Client) Rows(ctx context.Context, asked *pb.ListRowsRequest) iter.Seq2[*pb.EvalRow, error] {
	return func(yield func(*pb.EvalRow, error) bool) {
		asked := proto.CloneOf(asked)
		for {
			page, err := request(ctx, c, c.bench.ListRows, asked)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range page.GetRows() {
				if !yield(row, nil) {
					return
				}
			}
			if asked.PageToken = page.GetNextPageToken(); asked.PageToken == "" {
				return
			}
		}
	}
}

// Cancel asks a run to stop; its rows are kept.
func (c *Client) Cancel(ctx context.Context, runID string) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.CancelRun, &pb.CancelRunRequest{RunId: runID})
	return response.GetRun(), err
}

// Resume resumes a cancelled or failed run where it stopped.
func (c *Client) Resume(ctx context.Context, runID string) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.ResumeRun, &pb.ResumeRunRequest{RunId: runID})
	return response.GetRun(), err
}

// ResumeWithBudget resumes a run that may now cost so many US dollars in all, in the place of the
// budget it had.
func (c *Client) ResumeWithBudget(ctx context.Context, runID string, usd float64) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.ResumeRun, &pb.ResumeRunRequest{RunId: runID, BudgetUsd: &usd})
	return response.GetRun(), err
}

// Delete deletes a finished run with its rows.
func (c *Client) Delete(ctx context.Context, runID string) error {
	_, err := request(ctx, c, c.bench.DeleteRun, &pb.DeleteRunRequest{RunId: runID})
	return err
}

// Rescore rescores a finished run as a new run; follow it with [Client.Watch].
func (c *Client) Rescore(ctx context.Context, asked *pb.RescoreRequest) (*pb.Run, error) {
	response, err := request(ctx, c, c.bench.Rescore, asked)
	return response.GetRun(), err
}

// Score scores one pair with an evaluator of the daemon.
func (c *Client) Score(
	ctx context.Context, evaluator string, original, processed Example, options map[string]any,
) (Assessment, error) {
	asked := &pb.ScoreRequest{Evaluator: evaluator}
	var err error
	if asked.Original, err = encodeExample(original); err != nil {
		return Assessment{}, err
	}
	if asked.Processed, err = encodeExample(processed); err != nil {
		return Assessment{}, err
	}
	if asked.Options, err = encodeFields(options, "options.", 0); err != nil {
		return Assessment{}, err
	}
	response, err := request(ctx, c, c.evaluator.Score, asked)
	if err != nil {
		return Assessment{}, err
	}
	details, err := decodeFields(response.GetDetails(), "details.", 0)
	return Assessment{Scores: response.GetScores(), Explanation: response.GetExplanation(), Details: details}, err
}

// Upload stores examples, and returns the digest for [cbenchpb.DatasetRef].Upload
// and how many there are.
func (c *Client) Upload(ctx context.Context, examples iter.Seq[Example]) (digest string, count int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire, err := c.bench.UploadExamples(ctx)
	if err != nil {
		return "", 0, c.explained(err, nil)
	}
	message, size := &pb.UploadExamplesRequest{}, 0
	for example := range examples {
		encoded, err := encodeExample(example)
		if err != nil {
			return "", 0, err
		}
		message.Examples = append(message.Examples, encoded)
		if size += proto.Size(encoded); size < uploadBytes {
			continue
		}
		if wire.Send(message) != nil {
			// Its status comes with the response.
			break
		}
		message, size = &pb.UploadExamplesRequest{}, 0
	}
	if len(message.GetExamples()) > 0 {
		_ = wire.Send(message)
	}
	response, err := wire.CloseAndRecv()
	if err != nil {
		return "", 0, c.explained(err, wire.Trailer())
	}
	return response.GetDigest(), response.GetExampleCount(), nil
}

// Components lists what a run may name: datasets, evaluators, metrics and systems.
func (c *Client) Components(ctx context.Context) (*pb.ListComponentsResponse, error) {
	return request(ctx, c, c.bench.ListComponents, &pb.ListComponentsRequest{})
}

// request makes one unary request within the client's timeout.
func request[Q, P any](
	ctx context.Context, c *Client, method func(context.Context, Q, ...grpc.CallOption) (P, error), message Q,
) (P, error) {
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var trailer metadata.MD
	response, err := method(bounded, message, grpc.Trailer(&trailer))
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return response, ctx.Err()
		}
		return response, c.explained(err, trailer)
	}
	c.hasAnswered.Store(true)
	return response, nil
}
