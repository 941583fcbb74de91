package cbench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// recorder is a memory that counts what reaches it.
type recorder struct {
	held    *held
	turns   []Turn
	ingests int
}

func (r *recorder) Reset(context.Context) error { return nil }

func (r *recorder) Ingest(ctx context.Context, turns []Turn) (Ingested, error) {
	switch turns[0].Content {
	case "fail":
		return Ingested{}, errors.New("told to fail")
	case "hold":
		if _, err := r.held.process(ctx, NewExample(nil)); err != nil {
			return Ingested{}, err
		}
	}
	r.turns = append(r.turns, turns...)
	r.ingests++
	return Ingested{StoredBytes: Tokens(int64(len(r.turns)))}, nil
}

func (r *recorder) Query(_ context.Context, query Query) (Answer, error) {
	return Answer{Response: fmt.Sprintf("%s %d/%d", query.Question, r.ingests, len(r.turns))}, nil
}

func memoryClient(t *testing.T, h *held) pb.MemorySystemClient {
	t.Helper()
	system := MemorySystem{
		Name: "m", New: func(context.Context, string) (Memory, error) { return &recorder{held: h}, nil },
	}
	return pb.NewMemorySystemClient(connected(t, started(t, system)))
}

func ingest(t *testing.T, client pb.MemorySystemClient, scope, id, content string) (*pb.IngestResponse, error) {
	t.Helper()
	turns := []*pb.Turn{{Role: "user", Content: content}}
	return client.Ingest(within(t), &pb.IngestRequest{Scope: scope, CallId: id, Turns: turns})
}

func query(t *testing.T, client pb.MemorySystemClient, scope string) string {
	t.Helper()
	answer, err := client.Query(within(t), &pb.QueryRequest{Scope: scope, Question: "?"})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetResponse()
}

func TestARepeatedIngestStoresNothingUntilTheScopeIsReset(t *testing.T) {
	client := memoryClient(t, newHeld())
	for range 2 {
		response, err := ingest(t, client, "a", "1", "hello")
		if err != nil || response.GetStoredBytes() != 1 {
			t.Fatalf("got %v, %v", response, err)
		}
	}
	if _, err := ingest(t, client, "b", "1", "another scope"); err != nil {
		t.Fatal(err)
	}
	if a, b := query(t, client, "a"), query(t, client, "b"); a != "? 1/1" || b != "? 1/1" {
		t.Errorf("got %q and %q", a, b)
	}
	if _, err := client.Reset(within(t), &pb.ResetRequest{Scope: "a"}); err != nil {
		t.Fatal(err)
	}
	if got := query(t, client, "a"); got != "? 0/0" {
		t.Errorf("after the reset: %q", got)
	}
	if _, err := ingest(t, client, "a", "1", "again"); err != nil {
		t.Fatal(err)
	}
	if a, b := query(t, client, "a"), query(t, client, "b"); a != "? 1/1" || b != "? 1/1" {
		t.Errorf("got %q and %q", a, b)
	}
}

func TestAnIngestThatFailedOrHasNoIDIsNotRemembered(t *testing.T) {
	client := memoryClient(t, newHeld())
	if _, err := ingest(t, client, "a", "1", "fail"); status.Code(err) != codes.Internal {
		t.Fatalf("got %v", err)
	}
	for _, id := range []string{"1", "", ""} {
		if _, err := ingest(t, client, "a", id, "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, client, "a"); got != "? 3/3" {
		t.Errorf("got %q", got)
	}
}

func TestAQueryWaitsForTheIngestBeforeIt(t *testing.T) {
	h := newHeld()
	client := memoryClient(t, h)
	ingested := make(chan error, 1)
	go func() {
		_, err := ingest(t, client, "a", "1", "hold")
		ingested <- err
	}()
	await(t, h.running, "the ingest")
	if got := query(t, client, "b"); got != "? 0/0" {
		t.Errorf("another scope waited: %q", got)
	}
	answered := make(chan string, 1)
	go func() { answered <- query(t, client, "a") }()
	close(h.released)
	if got := await(t, answered, "the answer"); got != "? 1/1" {
		t.Errorf("got %q", got)
	}
	if err := await(t, ingested, "the ingest"); err != nil {
		t.Error(err)
	}
}

func TestResettingAnUnknownScopeSucceedsAndLeavesNothing(t *testing.T) {
	server := started(t, MemorySystem{
		Name: "m", New: func(context.Context, string) (Memory, error) { return &recorder{}, nil },
	})
	client := pb.NewMemorySystemClient(connected(t, server))
	if _, err := client.Reset(within(t), &pb.ResetRequest{Scope: "never seen"}); err != nil {
		t.Error(err)
	}
	if scopes := server.host.memories.all()[0].scopes; len(scopes) != 0 {
		t.Errorf("left behind: %v", scopes)
	}
}
