package cbench

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// patient is a daemon that answers when its caller has gone, and streams many rows at once.
type patient struct {
	pb.UnimplementedBenchServer
	asked chan struct{}
}

func (p patient) GetRun(ctx context.Context, _ *pb.GetRunRequest) (*pb.GetRunResponse, error) {
	p.asked <- struct{}{}
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

func (p patient) WatchRun(_ *pb.WatchRunRequest, wire grpc.ServerStreamingServer[pb.WatchRunResponse]) error {
	var events []*pb.RunEvent
	for sequence := range int64(40) {
		events = append(events, event(10+sequence))
	}
	return wire.Send(&pb.WatchRunResponse{Events: events})
}

func TestACancelledLoopYieldsNoMoreRows(t *testing.T) {
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	rows := 0
	for _, err := range clientOf(t, patient{}).Watch(ctx, "r") {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			continue
		}
		rows++
		cancel()
	}
	if rows != 1 {
		t.Errorf("%d rows came, all but one of them after the end", rows)
	}
}

func TestARequestEndsWithItsContextAndSaysSo(t *testing.T) {
	daemon := patient{asked: make(chan struct{}, 1)}
	client := clientOf(t, daemon)
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-daemon.asked
		cancel()
	}()
	if _, err := client.Get(ctx, "r"); !errors.Is(err, context.Canceled) || status.Code(err) == codes.OK {
		t.Errorf("got %v", err)
	}
	ctx, cancel = context.WithTimeout(within(t), time.Millisecond)
	defer cancel()
	if _, err := client.Get(ctx, "r"); !errors.Is(err, context.DeadlineExceeded) || Reason(err) != "UNREACHABLE" {
		t.Errorf("got %v", err)
	}
	client.timeout = time.Millisecond
	_, err := client.Get(within(t), "r")
	if !errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestEveryCauseHasAnErrorOfItsOwn(t *testing.T) {
	same := System{Name: "same", Process: func(_ context.Context, example Example) (Example, error) { return example, nil }}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var notServable *NotServableError
	for name, options := range map[string][]ServeOption{
		"nothing": nil, "no name": {System{Process: same.Process}}, "no function": {System{Name: "s"}}, "two": {same, same},
		"a bad name": {Evaluator{Name: "A B"}}, "no score": {Evaluator{Name: "a"}}, "no memory": {MemorySystem{Name: "m"}},
	} {
		if _, err := NewServer(options...); !errors.As(err, &notServable) || Reason(err) != "NOT_SERVABLE" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var cannotServe *CannotServeError
	for _, address := range []string{taken.Addr().String(), "nowhere", "0.0.0.0:0"} {
		if _, err := NewServer(same, WithAddress(address)); !errors.As(err, &cannotServe) || Reason(err) != "CANNOT_SERVE" {
			t.Errorf("%s: got %v", address, err)
		}
	}
	if _, err := ServerTLS("none.pem", "none.pem", ""); !errors.As(err, &cannotServe) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	_, err = EncodeFields(map[string]any{"f": func() {}})
	if Reason(err) != "UNENCODABLE_VALUE" {
		t.Errorf("got %v", err)
	}
	_, err = NewClient("bench.example.org:50051", WithToken("secret"))
	if Reason(err) != "INSECURE_TOKEN" {
		t.Errorf("got %v", err)
	}
	if Reason(errors.New("any other")) != "" || Reason(&Failure{Reason: "BUSY"}) != "BUSY" {
		t.Error("reasons are mixed up")
	}
}

func TestAServerThatIsNoDaemonIsNotReached(t *testing.T) {
	client := clientOf(t, pb.UnimplementedBenchServer{})
	_, err := client.Get(within(t), "r")
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestStdoutIsBackWhenServingHasEnded(t *testing.T) {
	before := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = null
	defer func() { os.Stdout = before }()
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	same := System{Name: "same", Process: func(_ context.Context, example Example) (Example, error) { return example, nil }}
	if err := Serve(ctx, same, WithTLS((*tls.Config)(nil))); err != nil {
		t.Error(err)
	}
	if os.Stdout != null {
		t.Error("stdout is another one now")
	}
}

func TestAnAnswerCarriesAContext(t *testing.T) {
	message, err := Answer{Response: "yes", Context: Text("found"), ContextTokens: Tokens(1)}.message()
	if err != nil || message.GetContext() != "found" || message.GetContextTokens() != 1 {
		t.Errorf("got %v, %v", message, err)
	}
}
