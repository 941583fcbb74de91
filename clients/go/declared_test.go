package cbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// everyOption has an option of every kind.
type everyOption struct {
	Ratio    float64        `help:"The share to keep." min:"0" max:"1"`
	MaxWords int            `min:"1"`
	Mode     string         `option:"mode" enum:"fast,good"`
	Loud     bool           `option:"loud"`
	Stop     []string       `option:"stop"`
	Weights  map[string]int `option:"weights"`
	Limit    *uint8         `option:"limit"`
	Anything any            `option:"anything"`
	Key      string         `option:"key" required:"true"`
	Ignored  chan int       `option:"-"`
}

func defaults() everyOption {
	return everyOption{Ratio: 0.5, MaxWords: 100, Mode: "good", Stop: []string{"the"}}
}

func optionClient(t *testing.T, options any, seen func(context.Context)) pb.SystemClient {
	t.Helper()
	system := System{Name: "s", Options: options, Process: func(ctx context.Context, example Example) (Example, error) {
		seen(ctx)
		return example, nil
	}}
	return pb.NewSystemClient(connected(t, started(t, system)))
}

func withOptions(t *testing.T, options map[string]any) *pb.ProcessRequest {
	t.Helper()
	request := asked("", nil)
	var err error
	if request.Options, err = EncodeFields(options); err != nil {
		t.Fatal(err)
	}
	return request
}

func TestAStructDeclaresOptionsWithTheirTypesRangesAndDefaults(t *testing.T) {
	client := optionClient(t, defaults(), func(context.Context) {})
	response, err := client.Describe(within(t), &pb.SystemDescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, option := range response.GetSystems()[0].GetDeclaredOptions().GetOptions() {
		line := fmt.Sprint(option.GetName(), " ", strings.TrimPrefix(option.GetType().String(), "OPTION_TYPE_"))
		if option.GetDefaultValue() != nil {
			value, err := DecodeFields(map[string]*pb.Value{"": option.GetDefaultValue()})
			if err != nil {
				t.Fatal(err)
			}
			line += fmt.Sprint(" = ", value[""])
		}
		for name, is := range map[string]bool{" required": option.GetRequired(), " nullable": option.GetNullable()} {
			if is {
				line += name
			}
		}
		lines = append(lines, line)
	}
	want := "ratio NUMBER = 0.5\nmax_words INTEGER = 100\nmode TEXT = good\nloud BOOL = false\nstop LIST = [the]\n" +
		"weights MAP = map[]\nlimit INTEGER nullable\nanything UNSPECIFIED\nkey TEXT required"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got:\n%s", got)
	}
	ratio := response.GetSystems()[0].GetDeclaredOptions().GetOptions()[0]
	if ratio.GetMinimum() != 0 || ratio.Minimum == nil || ratio.GetMaximum() != 1 || ratio.GetDescription() != "The share to keep." {
		t.Errorf("got %v", ratio)
	}
}

func TestACallGetsItsOptionsInThePlaceOfTheDefaults(t *testing.T) {
	var got everyOption
	client := optionClient(t, defaults(), func(ctx context.Context) { got = OptionsOf[everyOption](ctx) })
	given := map[string]any{
		"ratio": 1, "max_words": 3.0, "mode": "fast", "loud": true, "stop": []any{"a", "b"}, "weights": map[string]any{"x": 2},
		"limit": 255, "anything": 1.5, "key": "k",
	}
	if _, err := client.Process(within(t), withOptions(t, given)); err != nil {
		t.Fatal(err)
	}
	limit := got.Limit
	got.Limit = nil
	want := "{1 3 fast true [a b] map[x:2] <nil> 1.5 k <nil>}"
	if fmt.Sprint(got) != want || limit == nil || *limit != 255 {
		t.Errorf("got %v, %v", got, limit)
	}
	if _, err := client.Process(within(t), withOptions(t, map[string]any{"key": "k"})); err != nil {
		t.Fatal(err)
	}
	if got.Ratio != 0.5 || got.MaxWords != 100 || got.Mode != "good" || got.Limit != nil {
		t.Errorf("got %v", got)
	}
}

func TestOptionsThatDoNotSuitAreRefusedByName(t *testing.T) {
	client := optionClient(t, defaults(), func(context.Context) { t.Error("it reached user code") })
	for name, want := range map[string]struct {
		options map[string]any
		told    string
	}{
		"unknown":         {map[string]any{"key": "k", "rato": 1}, `there is no option "rato". There are: ratio, max_words`},
		"missing":         {map[string]any{}, `option "key" is missing`},
		"a wrong kind":    {map[string]any{"key": "k", "ratio": "half"}, `option "ratio" is "half"; it must be a number`},
		"a fraction":      {map[string]any{"key": "k", "max_words": 2.5}, `option "max_words" is 2.5; it must be an integer`},
		"too small":       {map[string]any{"key": "k", "max_words": 0}, "at least 1"},
		"too large":       {map[string]any{"key": "k", "ratio": 1.1}, "at most 1"},
		"not a choice":    {map[string]any{"key": "k", "mode": "slow"}, "one of [fast good]"},
		"beyond its type": {map[string]any{"key": "k", "limit": 256}, "an integer that fits"},
		"null":            {map[string]any{"key": nil}, `it must be text`},
		"a bad item":      {map[string]any{"key": "k", "stop": []any{1}}, "a list of such values"},
	} {
		_, err := client.Process(within(t), withOptions(t, want.options))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want.told) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOptionsOfAnyOtherNameMayBeTaken(t *testing.T) {
	type open struct {
		K    int            `option:"k"`
		Rest map[string]any `option:"*"`
	}
	var got open
	client := optionClient(t, open{K: 3}, func(ctx context.Context) { got = OptionsOf[open](ctx) })
	if _, err := client.Process(within(t), withOptions(t, map[string]any{"k": 4, "x": "y"})); err != nil {
		t.Fatal(err)
	}
	if got.K != 4 || got.Rest["x"] != "y" || len(got.Rest) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestOptionsThatCannotBeDeclaredAreNotServed(t *testing.T) {
	type channel struct{ C chan int }
	type bounds struct {
		N int `min:"low"`
	}
	type name struct {
		N int `option:"a=b"`
	}
	for _, options := range []any{3, &everyOption{}, channel{}, bounds{}, name{}} {
		_, err := NewServer(System{Name: "s", Options: options, Process: newHeld().process})
		if Reason(err) != "NOT_SERVABLE" {
			t.Errorf("%T: got %v", options, err)
		}
	}
}

func TestAMemoryAndAnEvaluatorDeclareTheirOptionsToo(t *testing.T) {
	type settings struct {
		K int `option:"k" max:"9"`
	}
	seen := make(chan int, 4)
	memory := MemorySystem{Name: "m", Options: settings{K: 3}, New: func(ctx context.Context, _ string) (Memory, error) {
		seen <- OptionsOf[settings](ctx).K
		return &recorder{}, nil
	}}
	evaluator := Evaluator{
		Name: "e", Options: settings{K: 3}, Scores: []ScoreInfo{{Name: "more"}, {Name: "less", LowerIsBetter: true}},
		Score: func(ctx context.Context, _, _ Example) (Assessment, error) {
			return Assessment{Scores: map[string]float64{"more": float64(OptionsOf[settings](ctx).K)}}, nil
		},
	}
	connection := connected(t, started(t, memory, evaluator, Evaluator{Name: "none", Score: evaluator.Score}))
	options, err := EncodeFields(map[string]any{"k": 5})
	if err != nil {
		t.Fatal(err)
	}
	memories, evaluators := pb.NewMemorySystemClient(connection), pb.NewEvaluatorClient(connection)
	if _, err := memories.Query(within(t), &pb.QueryRequest{Scope: "a", Options: options}); err != nil || <-seen != 5 {
		t.Errorf("got %v", err)
	}
	if _, err := memories.Reset(within(t), &pb.ResetRequest{Scope: "b"}); err != nil || <-seen != 3 {
		t.Errorf("got %v", err)
	}
	scored, err := evaluators.Score(within(t), &pb.ScoreRequest{Evaluator: "e", Options: options})
	if err != nil || scored.GetScores()["more"] != 5 {
		t.Errorf("got %v, %v", scored, err)
	}
	described, err := evaluators.Describe(within(t), &pb.EvaluatorDescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for position, count := range []int{1, 0} {
		if told := described.GetEvaluators()[position].GetDeclaredOptions(); told == nil || len(told.GetOptions()) != count {
			t.Errorf("got %v", told)
		}
	}
	scores := described.GetEvaluators()[0].GetScores()
	if scores[0].GetDirection() != pb.ScoreDirection_SCORE_DIRECTION_HIGHER_IS_BETTER ||
		scores[1].GetDirection() != pb.ScoreDirection_SCORE_DIRECTION_LOWER_IS_BETTER {
		t.Errorf("got %v", scores)
	}
}

func TestTheTraceContextReachesUserCode(t *testing.T) {
	traced := make(chan string, 3)
	client := optionClient(t, nil, func(ctx context.Context) {
		call := CallOf(ctx)
		traced <- call.Traceparent + " " + call.Tracestate
	})
	ctx := metadata.AppendToOutgoingContext(within(t), "traceparent", "00-1-2-01", "tracestate", "a=1")
	if _, err := client.Process(ctx, asked("", nil)); err != nil || <-traced != "00-1-2-01 a=1" {
		t.Errorf("got %v", err)
	}
	stream, err := client.ProcessStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Those of a stream have their own, or none.
	for _, traceparent := range []string{"00-3-4-01", ""} {
		call := &pb.ProcessCall{Request: asked("", nil), Traceparent: traceparent, Tracestate: "b=2"}
		if err := stream.Send(&pb.ProcessStreamRequest{Calls: []*pb.ProcessCall{call}}); err != nil {
			t.Fatal(err)
		}
		if got := await(t, traced, "a call"); got != traceparent+" b=2" {
			t.Errorf("got %q", got)
		}
	}
}

// archive is a daemon with files.
type archive struct {
	pb.UnimplementedBenchServer
	imported bytes.Buffer
}

func (*archive) Compare(_ context.Context, request *pb.CompareRequest) (*pb.CompareResponse, error) {
	return &pb.CompareResponse{Comparison: &pb.Comparison{Systems: []string{request.GetRunId()}}}, nil
}

func (*archive) Gate(_ context.Context, request *pb.GateRequest) (*pb.GateResponse, error) {
	return &pb.GateResponse{RunId: request.GetRunId(), Passed: true}, nil
}

func (*archive) PinRun(_ context.Context, asked *pb.PinRunRequest) (*pb.PinRunResponse, error) {
	return &pb.PinRunResponse{RunId: fmt.Sprint(asked.GetRunId(), asked.GetUnpin())}, nil
}

func (*archive) PruneRuns(_ context.Context, asked *pb.PruneRunsRequest) (*pb.PruneRunsResponse, error) {
	if asked.GetKeep() < 0 {
		field := &errdetails.BadRequest_FieldViolation{Field: "keep", Description: "negative"}
		told := status.New(codes.InvalidArgument, "keep must not be negative")
		detailed, _ := told.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{field}})
		return nil, detailed.Err()
	}
	return &pb.PruneRunsResponse{Runs: []*pb.PrunedRun{{RunId: "old", Why: "count"}}}, nil
}

func (*archive) ExplainWait(_ context.Context, request *pb.ExplainWaitRequest) (*pb.ExplainWaitResponse, error) {
	return &pb.ExplainWaitResponse{Run: &pb.Run{RunId: request.GetRunId() + request.GetReason()}}, nil
}

func (*archive) Report(_ *pb.ReportRequest, wire grpc.ServerStreamingServer[pb.ReportResponse]) error {
	return errors.Join(wire.Send(&pb.ReportResponse{Content: []byte("<p>"), RunId: "r"}), wire.Send(&pb.ReportResponse{Content: []byte("</p>")}))
}

func (*archive) Export(request *pb.ExportRequest, wire grpc.ServerStreamingServer[pb.ExportResponse]) error {
	if request.GetFormat() != "csv" {
		wire.SetTrailer(metadata.Pairs("cbench-reason", "UNKNOWN_FORMAT"))
		return status.Error(codes.NotFound, "no such format")
	}
	return wire.Send(&pb.ExportResponse{Content: []byte("a,b")})
}

func (a *archive) Import(wire grpc.ClientStreamingServer[pb.ImportRequest, pb.ImportResponse]) error {
	for {
		message, err := wire.Recv()
		if err != nil {
			return wire.SendAndClose(&pb.ImportResponse{Run: &pb.Run{RunId: "new"}, AlreadyStored: true})
		}
		a.imported.Write(message.GetContent())
	}
}

func TestAClientHasWhatTheCommandLineHas(t *testing.T) {
	daemon := &archive{}
	client := clientOf(t, daemon)
	comparison, err := client.Compare(within(t), &pb.CompareRequest{RunId: "r"})
	if err != nil || !proto.Equal(comparison, &pb.Comparison{Systems: []string{"r"}}) {
		t.Errorf("got %v, %v", comparison, err)
	}
	if gate, err := client.Gate(within(t), &pb.GateRequest{RunId: "r"}); err != nil || !gate.GetPassed() {
		t.Errorf("got %v, %v", gate, err)
	}
	if id, err := client.Pin(within(t), "r"); err != nil || id != "rfalse" {
		t.Error(id, err)
	}
	if id, err := client.Unpin(within(t), "r"); err != nil || id != "rtrue" {
		t.Error(id, err)
	}
	if pruned, err := client.Prune(within(t), &pb.PruneRunsRequest{}); err != nil || pruned.GetRuns()[0].GetWhy() != "count" {
		t.Error(pruned, err)
	}
	_, err = client.Prune(within(t), &pb.PruneRunsRequest{Keep: proto.Int64(-1)})
	var refused *RefusedError
	if !errors.As(err, &refused) || !slices.Equal(refused.Violations, []FieldViolation{{"keep", "negative"}}) {
		t.Errorf("%#v", err)
	}
	if run, err := client.ExplainWait(within(t), "r", "!"); err != nil || run.GetRunId() != "r!" {
		t.Errorf("got %v, %v", run, err)
	}
	var page, table bytes.Buffer
	if err := client.Report(within(t), &pb.ReportRequest{RunId: "r"}, &page); err != nil || page.String() != "<p></p>" {
		t.Errorf("got %q, %v", page.String(), err)
	}
	if err := client.Export(within(t), &pb.ExportRequest{Format: "csv"}, &table); err != nil || table.String() != "a,b" {
		t.Errorf("got %q, %v", table.String(), err)
	}
	if err := client.Export(within(t), &pb.ExportRequest{Format: "x"}, &table); Reason(err) != "UNKNOWN_FORMAT" {
		t.Errorf("got %v", err)
	}
	whole := strings.Repeat("x", 3*uploadBytes+1)
	run, isStored, err := client.Import(within(t), strings.NewReader(whole), false)
	if err != nil || run.GetRunId() != "new" || !isStored || daemon.imported.String() != whole {
		t.Errorf("got %v, %v, %v after %d bytes", run, isStored, err, daemon.imported.Len())
	}
}
