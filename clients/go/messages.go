package cbench

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// Turn is one turn of a conversation.
type Turn struct {
	// Role is who speaks, as a model sees it: "user" or "assistant".
	Role string
	// Content is what is said.
	Content string
	// Speaker is the speaker's own name, "" if unknown.
	Speaker string
	// Time is when it was said, in ISO 8601 where the dataset allows it; "" if unknown.
	Time string
	// Session is the session it belongs to, "" if unknown.
	Session string
	// Fields is anything else known about it.
	Fields map[string]any
}

// Usage is what a call cost. What is nil, or zero for ComputeTime, is not reported.
type Usage struct {
	// PromptTokens counts tokens sent to a model.
	PromptTokens *int64
	// CompletionTokens counts tokens produced by a model.
	CompletionTokens *int64
	// TotalTokens counts all tokens, where that is not the sum of the two.
	TotalTokens *int64
	// CachedPromptTokens are those of PromptTokens that the model had in its cache.
	CachedPromptTokens *int64
	// Requests were made to a model, further attempts included.
	Requests *int64
	// AbandonedRequests are those of Requests that were given up before an answer came.
	AbandonedRequests *int64
	// CostUSD is money spent, in US dollars.
	CostUSD *float64
	// ComputeTime is what the system itself took, without network or queueing.
	ComputeTime time.Duration
}

// Tokens returns a pointer to a count, for [Usage] and [Answer].
func Tokens(count int64) *int64 { return &count }

// Text returns a pointer to a text, for [Answer].Context.
func Text(text string) *string { return &text }

// Dollars returns a pointer to an amount, for [Usage].
func Dollars(amount float64) *float64 { return &amount }

// fields gives the usage the shape it has among the fields of an example.
func (u Usage) fields() map[string]any {
	fields := map[string]any{}
	for name, count := range map[string]*int64{
		"prompt_tokens": u.PromptTokens, "completion_tokens": u.CompletionTokens, "total_tokens": u.TotalTokens,
		"cached_prompt_tokens": u.CachedPromptTokens, "requests": u.Requests, "abandoned_requests": u.AbandonedRequests,
	} {
		if count != nil {
			fields[name] = *count
		}
	}
	if u.CostUSD != nil {
		fields["cost_usd"] = *u.CostUSD
	}
	if u.ComputeTime != 0 {
		fields["compute_seconds"] = u.ComputeTime.Seconds()
	}
	return fields
}

func (u *Usage) message() *pb.Usage {
	if u == nil {
		return nil
	}
	message := &pb.Usage{
		PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens,
		TotalTokens: u.TotalTokens, CostUsd: u.CostUSD, CachedPromptTokens: u.CachedPromptTokens,
		Requests: u.Requests, AbandonedRequests: u.AbandonedRequests,
	}
	if u.ComputeTime != 0 {
		message.ComputeTime = durationpb.New(u.ComputeTime)
	}
	return message
}

// usageOf reads usage in the OpenAI shape; what is not a number is left out.
func usageOf(value any) *Usage {
	fields, ok := value.(map[string]any)
	if !ok || len(fields) == 0 {
		return nil
	}
	usage := &Usage{
		PromptTokens: count(fields["prompt_tokens"]), CompletionTokens: count(fields["completion_tokens"]),
		TotalTokens: count(fields["total_tokens"]), CachedPromptTokens: count(fields["cached_prompt_tokens"]),
		Requests: count(fields["requests"]), AbandonedRequests: count(fields["abandoned_requests"]),
	}
	if cost, ok := number(fields["cost_usd"]); ok {
		usage.CostUSD = &cost
	}
	if seconds, ok := number(fields["compute_seconds"]); ok {
		usage.ComputeTime = time.Duration(math.Round(seconds * float64(time.Second)))
	}
	return usage
}

func count(value any) *int64 {
	switch value := value.(type) {
	case int:
		return Tokens(int64(value))
	case int64:
		return Tokens(value)
	}
	return nil
}

func number(value any) (float64, bool) {
	switch value := value.(type) {
	case float64:
		return value, true
	case int:
		return float64(value), true
	case int64:
		return float64(value), true
	}
	return 0, false
}

func encodeExample(example Example) (*pb.Example, error) {
	rest := example.Fields()
	message := &pb.Example{}
	if id, ok := rest["id"]; ok {
		encoded, err := encodeID(id)
		if err != nil {
			return nil, err
		}
		message.Id = encoded
		delete(rest, "id")
	}
	if dataset, ok := rest["dataset"].(string); ok {
		if !utf8.ValidString(dataset) {
			return nil, notText("dataset")
		}
		message.Dataset = &dataset
		delete(rest, "dataset")
	}
	fields, err := encodeFields(rest, "", 0)
	message.Fields = fields
	return message, err
}

func encodeID(id any) (*pb.ExampleId, error) {
	value, err := encodeValue(id, "id", 0)
	if err != nil {
		return nil, err
	}
	switch kind := value.GetKind().(type) {
	case *pb.Value_StringValue:
		return &pb.ExampleId{Kind: &pb.ExampleId_Text{Text: kind.StringValue}}, nil
	case *pb.Value_IntValue:
		return &pb.ExampleId{Kind: &pb.ExampleId_Number{Number: kind.IntValue}}, nil
	}
	return nil, &UnencodableError{"id", fmt.Sprintf("holds a %T; an id is text or an integer.", id)}
}

func decodeExample(message *pb.Example) (Example, error) {
	fields, err := decodeFields(message.GetFields(), "", 0)
	if err != nil {
		return Example{}, err
	}
	if message.GetId() != nil {
		switch kind := message.GetId().GetKind().(type) {
		case *pb.ExampleId_Text:
			fields["id"] = kind.Text
		case *pb.ExampleId_Number:
			fields["id"] = kind.Number
		default:
			return Example{}, &UnencodableError{"id", "is an ExampleId with no kind set."}
		}
	}
	if message != nil && message.Dataset != nil {
		fields["dataset"] = message.GetDataset()
	}
	return Example{fields}, nil
}

func encodeTurns(turns []Turn) ([]*pb.Turn, error) {
	messages := make([]*pb.Turn, len(turns))
	for position, turn := range turns {
		texts := []struct{ name, text string }{
			{"role", turn.Role}, {"content", turn.Content}, {"speaker", turn.Speaker},
			{"time", turn.Time}, {"session", turn.Session},
		}
		for _, each := range texts {
			if !utf8.ValidString(each.text) {
				return nil, notText("turn." + each.name)
			}
		}
		fields, err := encodeFields(turn.Fields, "turn.", 0)
		if err != nil {
			return nil, err
		}
		messages[position] = &pb.Turn{
			Role: turn.Role, Content: turn.Content, Speaker: turn.Speaker,
			Time: turn.Time, Session: turn.Session, Fields: fields,
		}
	}
	return messages, nil
}

func decodeTurns(messages []*pb.Turn) ([]Turn, error) {
	turns := make([]Turn, len(messages))
	for position, message := range messages {
		fields, err := decodeFields(message.GetFields(), "turn.", 0)
		if err != nil {
			return nil, err
		}
		turns[position] = Turn{
			Role: message.GetRole(), Content: message.GetContent(), Speaker: message.GetSpeaker(),
			Time: message.GetTime(), Session: message.GetSession(), Fields: fields,
		}
	}
	return turns, nil
}

// encodeProcessed encodes what a system made of original. Fields that are
// unchanged are named, not echoed.
func encodeProcessed(processed, original Example) (*pb.ProcessResponse, error) {
	rest := processed.Fields()
	response := &pb.ProcessResponse{Usage: usageOf(rest["api_usage"]).message()}
	for name, value := range rest {
		before, ok := original.Lookup(name)
		if ok && isUnchanged(value, before) {
			response.CarriedFields = append(response.CarriedFields, name)
			delete(rest, name)
		}
	}
	slices.Sort(response.CarriedFields)
	fields, err := encodeFields(rest, "", 0)
	response.Fields = fields
	return response, err
}

// isUnchanged compares what can be compared cheaply; lists and maps, which user
// code might have changed in place, count as changed.
func isUnchanged(value, before any) bool {
	switch value := value.(type) {
	case nil, string, bool, int64:
		return value == before
	case float64:
		other, ok := before.(float64)
		return ok && math.Float64bits(value) == math.Float64bits(other)
	}
	return false
}
