package cbench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// deadline is how long a test waits for something that should happen at once.
const deadline = 20 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// await waits for a channel to give something or to be closed.
func await[T any](t *testing.T, channel <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(deadline):
		t.Fatalf("%s did not come", what)
		panic("unreachable")
	}
}

func started(t *testing.T, options ...ServeOption) *Server {
	t.Helper()
	server, err := NewServer(options...)
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.grpc.Stop)
	return server
}

// heldAddress is an address at which nobody listens but who is told of it: a freed port would be
// given to the next who asks, and tests run beside one another. Servers set SO_REUSEADDR too, so
// they may listen at what is only bound.
func heldAddress(t *testing.T) string {
	t.Helper()
	holder, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(holder) })
	anyPort := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	err = errors.Join(
		syscall.SetsockoptInt(holder, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(holder, anyPort),
	)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(holder)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port)
}

func connected(t *testing.T, server *Server) *grpc.ClientConn {
	t.Helper()
	connection, err := dial(server.Address(), &settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

type process = func(context.Context, Example) (Example, error)

func systemClient(t *testing.T, process process) pb.SystemClient {
	t.Helper()
	return pb.NewSystemClient(connected(t, started(t, System{Name: "s", Process: process})))
}

func asked(id string, fields map[string]any) *pb.ProcessRequest {
	example, err := encodeExample(NewExample(fields))
	if err != nil {
		panic(err)
	}
	return &pb.ProcessRequest{Example: example, CallId: id}
}

// told reads the failure that travels with a status.
func told(t *testing.T, trailer metadata.MD) *Failure {
	t.Helper()
	message := &pb.Failure{}
	if encoded := trailer.Get("cbench-failure-bin"); len(encoded) != 1 {
		t.Fatalf("no failure in %v", trailer)
	} else if err := proto.Unmarshal([]byte(encoded[0]), message); err != nil {
		t.Fatal(err)
	}
	return DecodeFailure(message)
}

func TestAFailureOfUserCodeIsAStatusWithTheFailureBesideIt(t *testing.T) {
	cases := map[string]struct {
		process process
		code    codes.Code
		want    Failure
		stack   string
	}{
		"an error": {
			func(context.Context, Example) (Example, error) { return Example{}, errors.New("no luck") },
			codes.Internal, Failure{Origin: OriginSystem, Reason: "EXCEPTION", Message: "no luck"}, "",
		},
		"a wrapped failure": {
			func(context.Context, Example) (Example, error) {
				failure := &Failure{Reason: "NOT_READY", Message: "wait", Retryable: true, RetryDelay: 1500 * time.Millisecond}
				return Example{}, errors.Join(errors.New("while loading"), failure)
			},
			codes.Unavailable,
			Failure{Origin: OriginSystem, Reason: "NOT_READY", Message: "wait", Retryable: true, RetryDelay: 1500 * time.Millisecond},
			"",
		},
		"a panic": {
			func(context.Context, Example) (Example, error) { panicForTest(); return Example{}, nil },
			codes.Internal, Failure{Origin: OriginSystem, Reason: "EXCEPTION", Message: "panic: oh no"}, "panicForTest",
		},
		"a nil dereference": {
			func(context.Context, Example) (Example, error) {
				var p *Failure
				return NewExample(nil).With("x", p.Reason), nil
			},
			codes.Internal,
			Failure{Origin: OriginSystem, Reason: "EXCEPTION", Message: "panic: runtime error: invalid memory address or nil pointer dereference"},
			"calls_test.go",
		},
		"the end of the goroutine": {
			func(context.Context, Example) (Example, error) { runtime.Goexit(); return Example{}, nil },
			codes.Internal, Failure{Origin: OriginSystem, Reason: "EXCEPTION", Message: "user code ended its goroutine"}, "",
		},
		"nothing returned": {
			func(context.Context, Example) (Example, error) { return Example{}, nil },
			codes.Internal,
			Failure{Origin: OriginSystem, Reason: "BAD_RETURN", Message: "Process returned the zero Example. Return example.With(...), NewExample(...), or an error."},
			"",
		},
		"a value that cannot cross": {
			func(_ context.Context, e Example) (Example, error) { return e.With("when", time.Now()), nil },
			codes.Internal,
			Failure{Origin: OriginSystem, Reason: "UNENCODABLE_VALUE", Message: `what Process returned cannot be sent: field "when" holds a time.Time, which cannot cross the wire. Send text, numbers, bytes, slices or string-keyed maps.`},
			"",
		},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			client := systemClient(t, each.process)
			var trailer metadata.MD
			_, err := client.Process(within(t), asked("1", nil), grpc.Trailer(&trailer))
			got := told(t, trailer)
			if !strings.Contains(got.StackTrace, each.stack) {
				t.Errorf("no %q in the stack trace %q", each.stack, got.StackTrace)
			}
			got.StackTrace = ""
			if status.Code(err) != each.code || *got != each.want {
				t.Errorf("got %v and %+v", err, *got)
			}
			if reason := trailer.Get("cbench-reason"); len(reason) != 1 || reason[0] != each.want.Reason {
				t.Errorf("got the reason %v", reason)
			}
			// The server lives.
			if _, err := client.Describe(within(t), &pb.SystemDescribeRequest{}); err != nil {
				t.Error(err)
			}
		})
	}
}

//go:noinline
func panicForTest() { panic("oh no") }

func TestAnUnknownNameIsAnsweredWithTheNamesServed(t *testing.T) {
	pass := func(_ context.Context, e Example) (Example, error) { return e, nil }
	server := started(t, System{Name: "first", Process: pass}, System{Name: "second", Process: pass})
	client := pb.NewSystemClient(connected(t, server))
	for name, code := range map[string]codes.Code{"third": codes.NotFound, "": codes.InvalidArgument} {
		_, err := client.Process(within(t), &pb.ProcessRequest{System: name})
		if status.Code(err) != code || !strings.Contains(err.Error(), "first, second") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestACallSeesItsIDItsOptionsAndItsDeadline(t *testing.T) {
	client := systemClient(t, func(ctx context.Context, e Example) (Example, error) {
		_, hasDeadline := ctx.Deadline()
		call := CallOf(ctx)
		return e.WithAll(map[string]any{"id seen": call.ID, "ratio": call.Options["ratio"], "deadline": hasDeadline}), nil
	})
	call := asked("call-1", nil)
	call.Options, _ = EncodeFields(map[string]any{"ratio": 0.5})
	response, err := client.Process(within(t), call)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := DecodeFields(response.GetFields())
	if got["id seen"] != "call-1" || got["ratio"] != 0.5 || got["deadline"] != true {
		t.Errorf("got %v", got)
	}
}

// held is a process that says when it runs and waits to be released.
type held struct {
	running  chan string
	released chan struct{}
	ended    chan error
}

func newHeld() *held {
	return &held{make(chan string, 100), make(chan struct{}), make(chan error, 100)}
}

func (h *held) process(ctx context.Context, e Example) (Example, error) {
	h.running <- CallOf(ctx).ID
	select {
	case <-h.released:
		h.ended <- nil
		return e.With("response", "released"), nil
	case <-ctx.Done():
		h.ended <- ctx.Err()
		return Example{}, ctx.Err()
	}
}

func TestADeadlineReachesUserCodeAndTheCaller(t *testing.T) {
	h := newHeld()
	client := systemClient(t, h.process)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Process(ctx, asked("1", nil))
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if ended := await(t, h.ended, "the end of user code"); ended == nil {
		t.Error("user code was not told")
	}
}

func TestACancellationReachesUserCode(t *testing.T) {
	h := newHeld()
	client := systemClient(t, h.process)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-h.running
		cancel()
	}()
	_, err := client.Process(ctx, asked("1", nil))
	if status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	if ended := await(t, h.ended, "the end of user code"); !errors.Is(ended, context.Canceled) {
		t.Errorf("user code saw %v", ended)
	}
}

func TestADuplicateInFlightIsRefused(t *testing.T) {
	h := newHeld()
	client := systemClient(t, h.process)
	first := make(chan error, 1)
	go func() {
		_, err := client.Process(within(t), asked("same", nil))
		first <- err
	}()
	await(t, h.running, "the first call")
	if _, err := client.Process(within(t), asked("same", nil)); status.Code(err) != codes.AlreadyExists {
		t.Errorf("got %v", err)
	}
	close(h.released)
	if err := await(t, first, "the first answer"); err != nil {
		t.Error(err)
	}
	if _, err := client.Process(within(t), asked("same", nil)); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestNoMoreCallsRunThanTheLimitAndNoMoreWaitThanTheBound(t *testing.T) {
	h := newHeld()
	var running, beyond atomic.Int64
	process := func(ctx context.Context, e Example) (Example, error) {
		if running.Add(1) > 2 {
			beyond.Add(1)
		}
		defer running.Add(-1)
		return h.process(ctx, e)
	}
	server := started(t, System{Name: "s", MaxConcurrency: 2, Process: process})
	client := pb.NewSystemClient(connected(t, server))
	answers := make(chan error, 11)
	for range 11 {
		go func() {
			_, err := client.Process(within(t), asked("", nil))
			answers <- err
		}()
	}
	// Two run and eight wait, so that one of eleven is refused.
	if err := await(t, answers, "a refusal"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
	close(h.released)
	for range 10 {
		if err := await(t, answers, "an answer"); err != nil {
			t.Error(err)
		}
	}
	if beyond.Load() > 0 {
		t.Errorf("%d calls began while two ran", beyond.Load())
	}
}

func TestWhatIsNoMessageIsTheCallersFault(t *testing.T) {
	server := started(t, System{Name: "s", Process: newHeld().process})
	connection := connected(t, server)
	err := connection.Invoke(within(t), "/cbench.v1.System/Process", []byte("\x0a\xff"), &[]byte{}, grpc.ForceCodec(rawCodec{}))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("got %v", err)
	}
	empty := asked("1", nil)
	empty.Example.Fields = map[string]*pb.Value{"hole": {}}
	_, err = pb.NewSystemClient(connection).Process(within(t), empty)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "hole") {
		t.Errorf("got %v", err)
	}
}

type rawCodec struct{}

func (rawCodec) Name() string                        { return "proto" }
func (rawCodec) Marshal(message any) ([]byte, error) { return message.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, into any) error {
	*into.(*[]byte) = data
	return nil
}

func TestFiftyMegabytesComeThrough(t *testing.T) {
	client := systemClient(t, func(_ context.Context, e Example) (Example, error) {
		return e.With("context", e.Context()+"!"), nil
	})
	large := strings.Repeat("x", 50_000_000)
	response, err := client.Process(within(t), asked("1", map[string]any{"context": large}))
	if err != nil {
		t.Fatal(err)
	}
	if got := response.GetFields()["context"].GetStringValue(); got != large+"!" {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestAConversationIsAnsweredTurnByTurn(t *testing.T) {
	system := System{
		Name: "s", Process: newHeld().process,
		ProcessConversation: func(_ context.Context, turns []Turn, _ Example) ([]Turn, error) {
			return []Turn{{Content: turns[0].Content + "!", Fields: turns[0].Fields}}, nil
		},
	}
	client := pb.NewSystemClient(connected(t, started(t, system, System{Name: "other", Process: newHeld().process})))
	turns, _ := encodeTurns([]Turn{{Role: "user", Content: "hi", Fields: map[string]any{"n": 1}}})
	response, err := client.ProcessConversation(within(t), &pb.ProcessConversationRequest{System: "s", Turns: turns})
	if err != nil {
		t.Fatal(err)
	}
	reply := response.GetReplies()[0]
	if reply.GetRole() != "assistant" || reply.GetContent() != "hi!" || reply.GetFields()["n"].GetIntValue() != 1 {
		t.Errorf("got %v", reply)
	}
	_, err = client.ProcessConversation(within(t), &pb.ProcessConversationRequest{System: "other", Turns: turns})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}
