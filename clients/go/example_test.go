package cbench

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

func TestWithLeavesTheExampleAsItWas(t *testing.T) {
	example := NewExample(map[string]any{"context": "long", "id": int64(3), "dataset": "d", "question": "q"})
	changed := example.With("context", "short").WithAll(map[string]any{"response": "r"}).Without("question")
	if example.Context() != "long" || example.Question() != "q" || example.Response() != "" {
		t.Errorf("the example changed: %v", example.Fields())
	}
	want := map[string]any{"context": "short", "response": "r", "id": int64(3), "dataset": "d"}
	if !reflect.DeepEqual(changed.Fields(), want) {
		t.Errorf("got %v", changed.Fields())
	}
	if changed.ID() != int64(3) || changed.Dataset() != "d" || changed.Get("nothing") != nil {
		t.Errorf("got %v, %v", changed.ID(), changed.Dataset())
	}
}

func TestAnExampleKeepsNoHoldOfTheMapItWasMadeFrom(t *testing.T) {
	fields := map[string]any{"a": 1}
	example := NewExample(fields)
	fields["a"] = 2
	example.Fields()["a"] = 3
	if example.Get("a") != 1 {
		t.Errorf("got %v", example.Get("a"))
	}
}

func TestUnchangedFieldsAreNamedAndChangedOnesSent(t *testing.T) {
	original := NewExample(map[string]any{
		"id": int64(1), "dataset": "d", "context": "long", "same": "s", "n": int64(1), "x": 0.0, "none": nil, "list": []any{"a"},
	})
	response, err := encodeProcessed(original.WithAll(map[string]any{"context": "short", "n": 1.0}), original)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"dataset", "id", "none", "same", "x"}; !reflect.DeepEqual(response.GetCarriedFields(), want) {
		t.Errorf("carried %v", response.GetCarriedFields())
	}
	sent, err := DecodeFields(response.GetFields())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"context": "short", "n": 1.0, "list": []any{"a"}}; !reflect.DeepEqual(sent, want) {
		t.Errorf("sent %v", sent)
	}
}

func TestUsageTravelsBesideTheFields(t *testing.T) {
	processed := NewExample(nil).WithUsage(Usage{
		PromptTokens: Tokens(9007199254740993), CompletionTokens: Tokens(0), CostUSD: Dollars(0.25), ComputeTime: 1500 * time.Millisecond,
	})
	response, err := encodeProcessed(processed, NewExample(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := &pb.Usage{PromptTokens: Tokens(9007199254740993), CompletionTokens: Tokens(0), CostUsd: Dollars(0.25)}
	got := response.GetUsage()
	if got.GetComputeTime().AsDuration() != 1500*time.Millisecond {
		t.Errorf("got %v", got)
	}
	got.ComputeTime = nil
	if !proto.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
