package cbench

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// System is the thing being benchmarked: it turns one example into another.
//
// It is passed to [Serve] and [Attach] like an option. Its functions are called
// from many goroutines at once.
type System struct {
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
	// required:"true"; option:"*" is a map for any others. Nil means that nothing
	// is said: whatever the run sets is in [Call].Options.
	Options any
	// Process transforms one example. What it returns is scored and counted,
	// whole: a changed "context", a "response", or both.
	Process func(ctx context.Context, example Example) (Example, error)
	// ProcessConversation answers every user turn of a conversation, in order.
	// May be nil; then the turns arrive in the field "turns" of an example.
	ProcessConversation func(ctx context.Context, turns []Turn, example Example) ([]Turn, error)
}

func (s System) addTo(host *host) error {
	if err := checkSystem(s.Name, s.MaxConcurrency); err != nil {
		return err
	}
	if s.Process == nil {
		return notServable("system %q has no Process", s.Name)
	}
	info := systemInfo(s.Name, s.Version, s.Description, s.MaxConcurrency)
	info.Capabilities = []pb.Capability{pb.Capability_CAPABILITY_STREAM}
	if s.ProcessConversation != nil {
		info.Capabilities = append(info.Capabilities, pb.Capability_CAPABILITY_CONVERSATION)
	}
	declared, err := declare(s.Name, s.Options)
	if err != nil {
		return err
	}
	info.DeclaredOptions = declared.announced()
	served := &servedSystem{newOffer(s.Name, OriginSystem, s.MaxConcurrency), s, info, declared}
	return host.systems.add("system", s.Name, served)
}

type servedSystem struct {
	*offer
	system   System
	info     *pb.SystemInfo
	declared *declared
}

func (s *servedSystem) process(ctx context.Context, request *pb.ProcessRequest) (proto.Message, error) {
	example, err := decodeExample(request.GetExample())
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	options, err := decodeFields(request.GetOptions(), "options.", 0)
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	if ctx, err = s.declared.into(ctx, options); err != nil {
		return nil, invalid(err, OriginSystem)
	}
	call := Call{ID: request.GetCallId(), Options: options, Instruction: request.GetInstruction()}
	started := time.Now()
	processed, err := s.system.Process(withCall(ctx, call), example)
	taken := time.Since(started)
	if err != nil {
		return nil, err
	}
	if processed.IsZero() {
		message := "Process returned the zero Example. Return example.With(...), NewExample(...), or an error."
		return nil, &Failure{Reason: "BAD_RETURN", Message: message}
	}
	response, err := encodeProcessed(processed, example)
	if err != nil {
		return nil, unencodable(err, "Process", OriginSystem)
	}
	response.HandlerTime = durationpb.New(taken)
	return response, nil
}

func (s *servedSystem) converse(ctx context.Context, request *pb.ProcessConversationRequest) (proto.Message, error) {
	if s.system.ProcessConversation == nil {
		message := fmt.Sprintf("system %q has no ProcessConversation", s.system.Name)
		return nil, &Failure{Reason: "UNIMPLEMENTED", Message: message}
	}
	turns, err := decodeTurns(request.GetTurns())
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	example, err := decodeExample(request.GetExample())
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	options, err := decodeFields(request.GetOptions(), "options.", 0)
	if err != nil {
		return nil, invalid(err, OriginSystem)
	}
	if ctx, err = s.declared.into(ctx, options); err != nil {
		return nil, invalid(err, OriginSystem)
	}
	call := Call{ID: request.GetCallId(), Options: options, Instruction: request.GetInstruction()}
	started := time.Now()
	replies, err := s.system.ProcessConversation(withCall(ctx, call), turns, example)
	taken := time.Since(started)
	if err != nil {
		return nil, err
	}
	for position := range replies {
		if replies[position].Role == "" {
			replies[position].Role = "assistant"
		}
	}
	messages, err := encodeTurns(replies)
	if err != nil {
		return nil, unencodable(err, "ProcessConversation", OriginSystem)
	}
	return &pb.ProcessConversationResponse{Replies: messages, HandlerTime: durationpb.New(taken)}, nil
}
