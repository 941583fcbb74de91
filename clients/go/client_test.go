package cbench

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// unsteady is a daemon whose streams break after a few events of one run.
type unsteady struct {
	pb.UnimplementedBenchServer
	started  []string
	resumed  []int64
	uploaded int64
}

func event(sequence int64) *pb.RunEvent {
	switch sequence {
	case 1:
		return &pb.RunEvent{Sequence: 1, Kind: &pb.RunEvent_Accepted{Accepted: &pb.Run{RunId: "r"}}}
	case 6:
		return &pb.RunEvent{Sequence: 6, Kind: &pb.RunEvent_Finished{Finished: &pb.Run{RunId: "r"}}}
	}
	return &pb.RunEvent{Sequence: sequence, Kind: &pb.RunEvent_Row{Row: &pb.EvalRow{Index: sequence}}}
}

func (u *unsteady) Evaluate(request *pb.EvaluateRequest, wire grpc.ServerStreamingServer[pb.EvaluateResponse]) error {
	if len(request.GetSpec().GetSystems()) == 0 {
		wire.SetTrailer(metadata.Pairs("cbench-reason", "INVALID_SPEC"))
		return status.Error(codes.InvalidArgument, "no systems")
	}
	u.started = append(u.started, request.GetRequestId())
	if err := wire.Send(&pb.EvaluateResponse{Events: []*pb.RunEvent{event(1), event(2)}}); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "restarting")
}

func (u *unsteady) WatchRun(request *pb.WatchRunRequest, wire grpc.ServerStreamingServer[pb.WatchRunResponse]) error {
	after := request.GetAfterSequence()
	u.resumed = append(u.resumed, after)
	// One event too early: a client must not rely on the daemon alone.
	events := []*pb.RunEvent{event(after), event(after + 1), event(after + 2)}
	if err := wire.Send(&pb.WatchRunResponse{Events: events}); err != nil {
		return err
	}
	if after+2 >= 6 {
		return nil
	}
	return status.Error(codes.Unavailable, "restarting")
}

func (u *unsteady) ListRuns(_ context.Context, request *pb.ListRunsRequest) (*pb.ListRunsResponse, error) {
	if request.GetPageToken() == "" {
		return &pb.ListRunsResponse{Runs: []*pb.Run{{RunId: "c"}, {RunId: "b"}}, NextPageToken: "more"}, nil
	}
	return &pb.ListRunsResponse{Runs: []*pb.Run{{RunId: "a"}}}, nil
}

func (u *unsteady) UploadExamples(wire grpc.ClientStreamingServer[pb.UploadExamplesRequest, pb.UploadExamplesResponse]) error {
	for {
		message, err := wire.Recv()
		if err != nil {
			return wire.SendAndClose(&pb.UploadExamplesResponse{Digest: "d", ExampleCount: u.uploaded})
		}
		u.uploaded += int64(len(message.GetExamples()))
	}
}

func clientOf(t *testing.T, daemon pb.BenchServer) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterBenchServer(server, daemon)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	client, err := NewClient(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func someSpec() *pb.RunSpec {
	return &pb.RunSpec{Systems: []*pb.SystemRef{{Location: &pb.SystemRef_Builtin{Builtin: "identity"}}}}
}

func TestARunIsFollowedThroughLostConnectionsEachEventOnce(t *testing.T) {
	daemon := &unsteady{}
	var seen []int64
	for event, err := range clientOf(t, daemon).Evaluate(within(t), someSpec()) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, event.GetSequence())
	}
	if !slices.Equal(seen, []int64{1, 2, 3, 4, 5, 6}) || !slices.Equal(daemon.resumed, []int64{2, 4}) || len(daemon.started) != 1 {
		t.Errorf("saw %v, resumed after %v, started %v", seen, daemon.resumed, daemon.started)
	}
}

func TestAWatchBeginsAfterASequenceAndMayBeLeft(t *testing.T) {
	daemon := &unsteady{}
	for event, err := range clientOf(t, daemon).Watch(within(t), "r", After(3)) {
		if err != nil || event.GetSequence() != 4 {
			t.Errorf("got %v, %v", event, err)
		}
		break
	}
	if !slices.Equal(daemon.resumed, []int64{3}) {
		t.Errorf("resumed after %v", daemon.resumed)
	}
}

func TestARefusalHasTheDaemonsReason(t *testing.T) {
	var refused *RefusedError
	for _, err := range clientOf(t, &unsteady{}).Evaluate(within(t), &pb.RunSpec{}) {
		if !errors.As(err, &refused) || refused.Reason != "INVALID_SPEC" || refused.Code != codes.InvalidArgument {
			t.Errorf("got %v", err)
		}
	}
	if refused == nil {
		t.Error("no error came")
	}
}

// locked is a daemon that lets nobody in.
type locked struct{ pb.UnimplementedBenchServer }

func (locked) GetRun(context.Context, *pb.GetRunRequest) (*pb.GetRunResponse, error) {
	return nil, status.Error(codes.Unauthenticated, "a bearer token is needed. Pass --token")
}

func TestATokenThatDoesNotDoIsARefusal(t *testing.T) {
	client := clientOf(t, locked{})
	for hasToken, told := range map[bool]string{false: "none was given. Pass WithToken.", true: "refused the token"} {
		client.hasToken = hasToken
		var refused *RefusedError
		_, err := client.Get(within(t), "r")
		if !errors.As(err, &refused) || refused.Reason != "UNAUTHENTICATED" || !strings.Contains(err.Error(), told) {
			t.Errorf("got %v", err)
		}
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %v", status.Code(err))
		}
	}
	var insecure *InsecureTokenError
	if _, err := NewClient("bench.example.org:50051", WithToken("secret")); !errors.As(err, &insecure) {
		t.Errorf("got %v", err)
	}
}

func TestADaemonThatIsNotThereIsNotWaitedFor(t *testing.T) {
	address := heldAddress(t)
	client, err := NewClient(address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var unreachable *UnreachableError
	if _, err := client.Start(within(t), someSpec()); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), address) {
		t.Errorf("got %v", err)
	}
}

func TestAListGoesThroughAllPages(t *testing.T) {
	var ids []string
	for run, err := range clientOf(t, &unsteady{}).List(within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, run.GetRunId())
	}
	if strings.Join(ids, "") != "cba" {
		t.Errorf("got %v", ids)
	}
}

func TestAnUploadSendsEveryExampleAndNamesABadOne(t *testing.T) {
	daemon := &unsteady{}
	client := clientOf(t, daemon)
	examples := make([]Example, 5)
	for position := range examples {
		examples[position] = NewExample(map[string]any{"id": position, "context": strings.Repeat("x", 400_000)})
	}
	digest, count, err := client.Upload(within(t), slices.Values(examples))
	if err != nil || digest != "d" || count != 5 {
		t.Errorf("got %q, %d, %v", digest, count, err)
	}
	bad := []Example{NewExample(map[string]any{"f": func() {}})}
	if _, _, err := client.Upload(within(t), slices.Values(bad)); err == nil || !strings.Contains(err.Error(), `"f"`) {
		t.Errorf("got %v", err)
	}
}

func TestCodesAreSpelledAsTheProtocolDoes(t *testing.T) {
	for code, name := range map[codes.Code]string{
		codes.DeadlineExceeded: "DEADLINE_EXCEEDED", codes.Canceled: "CANCELLED", codes.NotFound: "NOT_FOUND", codes.OK: "OK",
	} {
		if got := codeName(code); got != name {
			t.Errorf("%v is spelled %s", code, got)
		}
	}
}
