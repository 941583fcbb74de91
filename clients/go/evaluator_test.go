package cbench

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

func lengthEvaluator() Evaluator {
	return Evaluator{
		Name: "length", Version: "2", Description: "Compares lengths.", MaxConcurrency: 3,
		Scores: []ScoreInfo{{Name: "difference", LowerIsBetter: true}}, RequiredFields: []string{"answer"},
		Score: func(_ context.Context, original, processed Example) (Assessment, error) {
			difference := float64(len(original.Text("answer")) - len(processed.Response()))
			return Assessment{
				Scores: map[string]float64{"difference": difference}, Explanation: "compared",
				Details: map[string]any{"id": original.ID()},
			}, nil
		},
	}
}

func pair() *pb.ScoreRequest {
	original, _ := encodeExample(NewExample(map[string]any{"id": 7, "answer": "abc"}))
	processed, _ := encodeExample(NewExample(map[string]any{"response": "a"}))
	return &pb.ScoreRequest{Original: original, Processed: processed}
}

func TestAnEvaluatorScoresAPairUnaryAndStreamed(t *testing.T) {
	client := pb.NewEvaluatorClient(connected(t, started(t, lengthEvaluator())))
	want := &pb.ScoreResponse{
		Scores: map[string]float64{"difference": 2}, Explanation: "compared", Details: map[string]*pb.Value{"id": integer(7)},
	}
	got, err := client.Score(within(t), pair())
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	stream, err := client.ScoreStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.ScoreStreamRequest{Calls: []*pb.ScoreCall{{CallId: "1", Request: pair()}}}); err != nil {
		t.Fatal(err)
	}
	message, err := stream.Recv()
	if err != nil || !proto.Equal(message.GetOutcomes()[0].GetResponse(), want) {
		t.Errorf("got %v, %v", message, err)
	}
}

func TestAnEvaluatorAnnouncesItsScores(t *testing.T) {
	client := pb.NewEvaluatorClient(connected(t, started(t, lengthEvaluator())))
	response, err := client.Describe(within(t), &pb.EvaluatorDescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	limit := int32(3)
	want := &pb.EvaluatorInfo{
		Name: "length", Version: "2", Description: "Compares lengths.", MaxConcurrency: &limit,
		Scores:         []*pb.ScoreInfo{{Name: "difference", Direction: pb.ScoreDirection_SCORE_DIRECTION_LOWER_IS_BETTER}},
		RequiredFields: []string{"answer"}, DeclaredOptions: &pb.DeclaredOptions{},
	}
	if !proto.Equal(response.GetEvaluators()[0], want) || response.GetSdk() != "cbench-go/0.1.0" {
		t.Errorf("got %v", response)
	}
}

func TestOptionsAnEvaluatorDoesNotTakeAreRefusedByName(t *testing.T) {
	client := pb.NewEvaluatorClient(connected(t, started(t, lengthEvaluator())))
	request := pair()
	request.Options, _ = EncodeFields(map[string]any{"model": "x"})
	_, err := client.Score(within(t), request)
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "model") {
		t.Errorf("got %v", err)
	}
}
