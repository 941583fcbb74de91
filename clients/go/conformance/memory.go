package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	cbench "github.com/cbench/cbench-server/clients/go"
)

// memory keeps the turns of one scope.
type memory struct {
	probe   *probe
	turns   []cbench.Turn
	ingests int64
}

func memorySystem(p *probe) cbench.MemorySystem {
	return cbench.MemorySystem{
		Name: "conformance-memory", Version: "1.0", Description: "Remembers turns.", MaxConcurrency: 16,
		New: func(context.Context, string) (cbench.Memory, error) { return &memory{probe: p}, nil },
	}
}

// obey does what a text commands, if it is a command.
func (m *memory) obey(ctx context.Context, command string) error {
	switch key, isHold := strings.CutPrefix(command, "hold:"); {
	case isHold:
		_, err := m.probe.hold(ctx, key, defaultHold)
		return err
	case command == "fail":
		return &cbench.Failure{Reason: "CONFORMANCE", Message: "told to fail"}
	case command == "panic":
		conformancePanic("told to panic")
	}
	return nil
}

func (m *memory) Reset(context.Context) error { return nil }

func (m *memory) Ingest(ctx context.Context, turns []cbench.Turn) (cbench.Ingested, error) {
	for _, turn := range turns {
		if err := m.obey(ctx, turn.Content); err != nil {
			return cbench.Ingested{}, err
		}
	}
	m.turns = append(m.turns, turns...)
	m.ingests++
	return cbench.Ingested{
		Usage:       &cbench.Usage{PromptTokens: cbench.Tokens(int64(len(turns)))},
		StoredBytes: m.storedBytes(),
	}, nil
}

func (m *memory) Query(ctx context.Context, query cbench.Query) (cbench.Answer, error) {
	if err := m.obey(ctx, query.Question); err != nil {
		return cbench.Answer{}, err
	}
	contents := make([]string, len(m.turns))
	for position, turn := range m.turns {
		contents[position] = turn.Content
	}
	remembered := strings.Join(contents, "\n")
	call := cbench.CallOf(ctx)
	metadata := map[string]any{
		"ingests": m.ingests, "question": query.Question, "budget": nil,
		"asked_at": orNull(query.AskedAt), "instruction": call.Instruction, "last": nil,
		"traceparent": call.Traceparent, "tracestate": call.Tracestate,
	}
	if query.Budget != nil {
		metadata["budget"] = *query.Budget
	}
	if len(m.turns) > 0 {
		metadata["last"] = asMap(m.turns[len(m.turns)-1])
	}
	return cbench.Answer{
		Response: strconv.Itoa(len(m.turns)), Context: &remembered,
		ContextTokens: cbench.Tokens(int64(len(m.turns))), StoredBytes: m.storedBytes(),
		RetrievalTime: 250 * time.Millisecond, Usage: &cbench.Usage{PromptTokens: cbench.Tokens(3)},
		Metadata: metadata,
	}, nil
}

func (m *memory) storedBytes() *int64 {
	var total int64
	for _, turn := range m.turns {
		total += int64(len(turn.Content))
	}
	return &total
}

func asMap(turn cbench.Turn) map[string]any {
	return map[string]any{
		"role": turn.Role, "content": turn.Content, "speaker": orNull(turn.Speaker),
		"time": orNull(turn.Time), "session": orNull(turn.Session), "fields": turn.Fields,
	}
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
