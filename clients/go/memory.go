package cbench

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// everyone is more than ever hold a scope at once; a call that takes that many is alone.
const everyone = 1 << 30

// MemorySystem is a system that remembers: it is fed conversations, then asked
// about them. It is passed to [Serve] and [Attach] like an option.
type MemorySystem struct {
	// Name is what rows and reports show: 1 to 200 characters without "/".
	Name string
	// Version is the version under test; change it when answers may change.
	Version string
	// Description is one sentence for `cbench systems`.
	Description string
	// MaxConcurrency is how many calls may run at once. Zero means that the
	// daemon decides, up to 256.
	MaxConcurrency int
	// Options declares the options taken, by a struct whose values are the
	// defaults: Settings{Ratio: 0.5}, with
	//
	//	Ratio float64 `help:"The share to keep." min:"0" max:"1"`
	//
	// They are checked before a run, shown by `cbench systems`, and read with
	// [OptionsOf]. Further tags are option:"name", enum:"low,high" and
	// required:"true"; option:"*" is a map for any others. Nil means that it takes
	// none.
	Options any
	// New makes the memory of one scope, when the scope is first used and after
	// it was reset. Scopes do not see each other.
	New func(ctx context.Context, scope string) (Memory, error)
}

// Memory is what one scope remembers. Reset and Ingest run alone, queries side by side.
type Memory interface {
	// Reset forgets everything. The memory is not used again.
	Reset(ctx context.Context) error
	// Ingest stores turns, in order. A repeated call does not reach it.
	Ingest(ctx context.Context, turns []Turn) (Ingested, error)
	// Query answers a question without changing what is remembered.
	Query(ctx context.Context, query Query) (Answer, error)
}

// Ingested is what ingesting cost. Everything may be left out.
type Ingested struct {
	// Usage is what was consumed.
	Usage *Usage
	// StoredBytes is what the scope now occupies.
	StoredBytes *int64
}

// Query is a question to a memory.
type Query struct {
	// Question is what is asked.
	Question string
	// Budget is the most tokens of remembered text to hand to a model, nil for no limit.
	Budget *int64
	// AskedAt is when the question is asked, as in Turn.Time; "" if unknown.
	AskedAt string
}

// Answer is what a memory answers. Everything may be left out but one of
// Response and Context.
type Answer struct {
	// Response is the answer; empty where the system only retrieves.
	Response string
	// Context is what was retrieved to answer from, see [Text]; nil if the system does not say.
	Context *string
	// ContextTokens counts the tokens of that context.
	ContextTokens *int64
	// StoredBytes is what the scope occupies.
	StoredBytes *int64
	// RetrievalTime was spent finding the context, without answering.
	RetrievalTime time.Duration
	// Usage is what was consumed.
	Usage *Usage
	// Metadata is anything to keep with the row.
	Metadata map[string]any
}

func (m MemorySystem) addTo(host *host) error {
	if err := checkSystem(m.Name, m.MaxConcurrency); err != nil {
		return err
	}
	if m.New == nil {
		return notServable("memory system %q has no New", m.Name)
	}
	declared, err := declare(m.Name, m.Options)
	if err != nil {
		return err
	}
	info := systemInfo(m.Name, m.Version, m.Description, m.MaxConcurrency)
	info.DeclaredOptions = declared.announced()
	served := &servedMemory{
		offer:    newOffer(m.Name, OriginSystem, m.MaxConcurrency),
		system:   m,
		info:     info,
		declared: declared,
		scopes:   map[string]*scope{},
	}
	return host.memories.add("memory system", m.Name, served)
}

type servedMemory struct {
	*offer
	system   MemorySystem
	info     *pb.SystemInfo
	declared *declared

	mu     sync.Mutex
	scopes map[string]*scope
}

// scope is what is known of one scope; memory is nil until it is first used.
type scope struct {
	// gate admits one writer or many readers, in order of arrival.
	gate *semaphore.Weighted
	// users counts those inside and those who wait.
	users int

	making   sync.Mutex
	memory   Memory
	ingested map[string]*pb.IngestResponse
}

// enter waits for a place in a scope: all of it, or one beside others.
func (m *servedMemory) enter(ctx context.Context, name string, places int64) (*scope, func(), error) {
	m.mu.Lock()
	entered := m.scopes[name]
	if entered == nil {
		entered = &scope{gate: semaphore.NewWeighted(everyone), ingested: map[string]*pb.IngestResponse{}}
		m.scopes[name] = entered
	}
	entered.users++
	m.mu.Unlock()
	forget := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		entered.users--
		if entered.users == 0 && entered.memory == nil {
			delete(m.scopes, name)
		}
	}
	if err := entered.gate.Acquire(ctx, places); err != nil {
		forget()
		return nil, nil, err
	}
	return entered, func() {
		entered.gate.Release(places)
		forget()
	}, nil
}

// memoryOf returns the memory of a scope, and makes it if there is none.
func (m *servedMemory) memoryOf(ctx context.Context, name string, of *scope) (Memory, error) {
	of.making.Lock()
	defer of.making.Unlock()
	if of.memory != nil {
		return of.memory, nil
	}
	made, err := m.system.New(ctx, name)
	if err == nil && made == nil {
		err = &Failure{Reason: "BAD_RETURN", Message: "New returned a nil Memory. Return one, or an error."}
	}
	of.memory = made
	return made, err
}

func (m *servedMemory) reset(ctx context.Context, request *pb.ResetRequest) (proto.Message, error) {
	entered, leave, err := m.enter(ctx, request.GetScope(), everyone)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx = withCall(m.declared.byDefault(ctx), Call{})
	memory, err := m.memoryOf(ctx, request.GetScope(), entered)
	if err != nil {
		return nil, err
	}
	if err := memory.Reset(ctx); err != nil {
		return nil, err
	}
	entered.memory = nil
	clear(entered.ingested)
	return &pb.ResetResponse{}, nil
}

func (m *servedMemory) ingest(ctx context.Context, request *pb.IngestRequest) (proto.Message, error) {
	turns, err := decodeTurns(request.GetTurns())
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	entered, leave, err := m.enter(ctx, request.GetScope(), everyone)
	if err != nil {
		return nil, err
	}
	defer leave()
	id := request.GetCallId()
	if earlier := entered.ingested[id]; earlier != nil {
		return earlier, nil
	}
	ctx, options, err := m.optionsOf(ctx, request.GetOptions())
	if err != nil {
		return nil, err
	}
	ctx = withCall(ctx, Call{ID: id, Options: options})
	memory, err := m.memoryOf(ctx, request.GetScope(), entered)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	ingested, err := memory.Ingest(ctx, turns)
	taken := durationpb.New(time.Since(started))
	if err != nil {
		return nil, err
	}
	response := &pb.IngestResponse{
		Usage: ingested.Usage.message(), StoredBytes: ingested.StoredBytes, HandlerTime: taken,
	}
	if id != "" {
		entered.ingested[id] = response
	}
	return response, nil
}

func (m *servedMemory) optionsOf(
	ctx context.Context, given map[string]*pb.Value,
) (context.Context, map[string]any, error) {
	options, err := decodeFields(given, "options.", 0)
	if err == nil {
		ctx, err = m.declared.into(ctx, options)
	}
	if err != nil {
		return ctx, nil, invalid(err, OriginSystem)
	}
	return ctx, options, nil
}

func (m *servedMemory) query(ctx context.Context, request *pb.QueryRequest) (proto.Message, error) {
	entered, leave, err := m.enter(ctx, request.GetScope(), 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, options, err := m.optionsOf(ctx, request.GetOptions())
	if err != nil {
		return nil, err
	}
	ctx = withCall(ctx, Call{ID: request.GetCallId(), Options: options, Instruction: request.GetInstruction()})
	memory, err := m.memoryOf(ctx, request.GetScope(), entered)
	if err != nil {
		return nil, err
	}
	query := Query{Question: request.GetQuestion(), Budget: request.Budget, AskedAt: request.GetAskedAt()}
	started := time.Now()
	answer, err := memory.Query(ctx, query)
	taken := time.Since(started)
	if err != nil {
		return nil, err
	}
	response, err := answer.message()
	if err != nil {
		return nil, unencodable(err, "Query", OriginSystem)
	}
	response.HandlerTime = durationpb.New(taken)
	return response, nil
}

func (a Answer) message() (*pb.QueryResponse, error) {
	texts := map[string]any{"response": a.Response}
	if a.Context != nil {
		texts["context"] = *a.Context
	}
	if _, err := encodeFields(texts, "", 0); err != nil {
		return nil, err
	}
	metadata, err := encodeFields(a.Metadata, "metadata.", 0)
	if err != nil {
		return nil, err
	}
	response := &pb.QueryResponse{
		Response: a.Response, Context: a.Context, ContextTokens: a.ContextTokens,
		StoredBytes: a.StoredBytes, Usage: a.Usage.message(), Metadata: metadata,
	}
	if a.RetrievalTime != 0 {
		response.RetrievalTime = durationpb.New(a.RetrievalTime)
	}
	return response, nil
}
