package cbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

type wire struct {
	t *testing.T
	pb.System_ProcessStreamClient
	waiting []*pb.ProcessOutcome
}

func opened(t *testing.T, client pb.SystemClient) *wire {
	t.Helper()
	stream, err := client.ProcessStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return &wire{t: t, System_ProcessStreamClient: stream}
}

func (w *wire) call(ids ...string) {
	w.t.Helper()
	message := &pb.ProcessStreamRequest{}
	for _, id := range ids {
		message.Calls = append(message.Calls, &pb.ProcessCall{Request: asked(id, nil)})
	}
	w.send(message)
}

func (w *wire) send(message *pb.ProcessStreamRequest) {
	w.t.Helper()
	if err := w.Send(message); err != nil {
		w.t.Fatal(err)
	}
}

// next returns the next outcome.
func (w *wire) next() *pb.ProcessOutcome {
	w.t.Helper()
	for len(w.waiting) == 0 {
		message, err := w.Recv()
		if err != nil {
			w.t.Fatal(err)
		}
		w.waiting = message.GetOutcomes()
	}
	outcome := w.waiting[0]
	w.waiting = w.waiting[1:]
	return outcome
}

func TestOutcomesComeAsSoonAsTheyAreReady(t *testing.T) {
	h := newHeld()
	client := systemClient(t, func(ctx context.Context, e Example) (Example, error) {
		if CallOf(ctx).ID == "slow" {
			return h.process(ctx, e)
		}
		return e.With("response", "quick"), nil
	})
	w := opened(t, client)
	w.call("slow", "quick")
	if id := w.next().GetCallId(); id != "quick" {
		t.Errorf("first came %q", id)
	}
	close(h.released)
	if id := w.next().GetCallId(); id != "slow" {
		t.Errorf("then came %q", id)
	}
}

func TestAfterHalfCloseWhatIsHeldIsAnswered(t *testing.T) {
	h := newHeld()
	w := opened(t, systemClient(t, h.process))
	w.call("1", "2")
	if err := w.CloseSend(); err != nil {
		t.Fatal(err)
	}
	await(t, h.running, "the calls")
	close(h.released)
	got := []string{w.next().GetCallId(), w.next().GetCallId()}
	slices.Sort(got)
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("got %v", got)
	}
	if _, err := w.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestACancelledCallGetsNoOutcomeAndMayBeAskedAgain(t *testing.T) {
	h := newHeld()
	w := opened(t, systemClient(t, h.process))
	w.call("1")
	await(t, h.running, "the call")
	w.send(&pb.ProcessStreamRequest{CancelCallIds: []string{"1", "unknown"}})
	if err := await(t, h.ended, "the end of user code"); !errors.Is(err, context.Canceled) {
		t.Errorf("user code saw %v", err)
	}
	w.call("1")
	close(h.released)
	if outcome := w.next(); outcome.GetResponse() == nil {
		t.Errorf("got %v", outcome)
	}
}

func TestAStreamedCallHasATimeOfItsOwn(t *testing.T) {
	h := newHeld()
	w := opened(t, systemClient(t, h.process))
	w.send(&pb.ProcessStreamRequest{Calls: []*pb.ProcessCall{
		{Request: asked("1", nil), Timeout: durationpb.New(30 * time.Millisecond)},
	}})
	if reason := w.next().GetFailure().GetReason(); reason != "DEADLINE_EXCEEDED" {
		t.Errorf("got %q", reason)
	}
	if err := await(t, h.ended, "the end of user code"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("user code saw %v", err)
	}
}

func TestABrokenStreamCancelsItsCalls(t *testing.T) {
	h := newHeld()
	client := systemClient(t, h.process)
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := client.ProcessStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.ProcessStreamRequest{Calls: []*pb.ProcessCall{{Request: asked("1", nil)}}}); err != nil {
		t.Fatal(err)
	}
	await(t, h.running, "the call")
	cancel()
	if err := await(t, h.ended, "the end of user code"); !errors.Is(err, context.Canceled) {
		t.Errorf("user code saw %v", err)
	}
}

func TestFailuresOnAStreamAreOutcomes(t *testing.T) {
	h := newHeld()
	w := opened(t, systemClient(t, func(ctx context.Context, e Example) (Example, error) {
		if CallOf(ctx).ID == "panic" {
			panicForTest()
		}
		return h.process(ctx, e)
	}))
	w.call("held")
	await(t, h.running, "the call")
	hole := asked("hole", nil)
	hole.Example.Fields = map[string]*pb.Value{"x": {}}
	other := asked("other", nil)
	other.System = "nobody"
	w.send(&pb.ProcessStreamRequest{Calls: []*pb.ProcessCall{
		{Request: asked("panic", nil)}, {Request: asked("held", nil)}, {Request: hole}, {Request: other},
	}})
	got := map[string]string{}
	for range 4 {
		outcome := w.next()
		got[outcome.GetCallId()] = outcome.GetFailure().GetReason()
	}
	want := map[string]string{"panic": "EXCEPTION", "held": "ALREADY_EXISTS", "hole": "INVALID_ARGUMENT", "other": "UNKNOWN_SYSTEM"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v", got)
	}
	close(h.released)
	if outcome := w.next(); outcome.GetResponse() == nil {
		t.Errorf("the first call got %v", outcome)
	}
}

func TestAStreamWithMoreCallsThanFitLosesNone(t *testing.T) {
	server := started(t, System{Name: "s", MaxConcurrency: 1, Process: func(_ context.Context, e Example) (Example, error) {
		return e.With("response", "done"), nil
	}})
	w := opened(t, pb.NewSystemClient(connected(t, server)))
	const calls = 500
	var ids []string
	for number := range calls {
		ids = append(ids, fmt.Sprint(number))
	}
	w.call(ids...)
	seen := map[string]bool{}
	for range calls {
		outcome := w.next()
		if outcome.GetResponse() == nil {
			t.Fatalf("got %v", outcome)
		}
		seen[outcome.GetCallId()] = true
	}
	if len(seen) != calls {
		t.Errorf("%d calls were answered", len(seen))
	}
}

func TestMessagesWithSeveralOutcomesStayBelowAMegabyte(t *testing.T) {
	h := newHeld()
	w := opened(t, systemClient(t, func(ctx context.Context, e Example) (Example, error) {
		_, err := h.process(ctx, e)
		return e.With("response", strings.Repeat("x", 300_000)), err
	}))
	const calls = 12
	for number := range calls {
		w.call(fmt.Sprint(number))
		await(t, h.running, "the call")
	}
	close(h.released)
	for seen := 0; seen < calls; {
		message, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		seen += len(message.GetOutcomes())
		if size := proto.Size(message); len(message.GetOutcomes()) > 1 && size > 1_050_000 {
			t.Errorf("a message of %d bytes", size)
		}
	}
}

func TestDrainingAnswersWhatIsHeldAndRefusesTheRest(t *testing.T) {
	h := newHeld()
	server := started(t, System{Name: "s", Process: h.process})
	client := pb.NewSystemClient(connected(t, server))
	w := opened(t, client)
	w.call("held")
	await(t, h.running, "the call")
	ended := make(chan error, 1)
	go func() { ended <- server.Shutdown(within(t)) }()
	await(t, server.services.draining, "the drain")
	if _, err := client.Process(within(t), asked("new", nil)); status.Code(err) != codes.Unavailable {
		t.Errorf("a new call got %v", err)
	}
	close(h.released)
	if outcome := w.next(); outcome.GetResponse() == nil {
		t.Errorf("the held call got %v", outcome)
	}
	if _, err := w.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v", err)
	}
	if err := await(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}
