package cbench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// Component is something to serve or to attach: a [System], a [MemorySystem] or
// an [Evaluator].
type Component interface {
	ServeOption
	AttachOption
	addTo(*host) error
}

// host holds what is offered, by name. Serving and attaching share it: both
// take calls off a wire, hand them to a host, and put the outcomes back.
type host struct {
	systems    named[*servedSystem]
	memories   named[*servedMemory]
	evaluators named[*servedEvaluator]
	draining   atomic.Bool
}

// named holds components of one kind, in the order in which they were given.
type named[T any] struct {
	names  []string
	byName map[string]T
}

func (n *named[T]) add(kind, name string, component T) error {
	if _, taken := n.byName[name]; taken {
		return notServable("two %ss are called %q; names must differ", kind, name)
	}
	if n.byName == nil {
		n.byName = map[string]T{}
	}
	n.names = append(n.names, name)
	n.byName[name] = component
	return nil
}

func (n *named[T]) all() []T {
	all := make([]T, len(n.names))
	for position, name := range n.names {
		all[position] = n.byName[name]
	}
	return all
}

// find returns whom a request is for. An empty name means the only one there is.
func (n *named[T]) find(name string, origin Origin) (T, *Failure) {
	if name == "" && len(n.names) == 1 {
		name = n.names[0]
	}
	if found, ok := n.byName[name]; ok {
		return found, nil
	}
	var none T
	served := strings.Join(n.names, ", ")
	if name == "" && served != "" {
		message := fmt.Sprintf("several are served here; name the %s. Served: %s", origin, served)
		return none, &Failure{Origin: origin, Reason: "INVALID_ARGUMENT", Message: message}
	}
	if served == "" {
		served = "none"
	}
	message := fmt.Sprintf("no %s %q is served here. Served: %s", origin, name, served)
	return none, &Failure{Origin: origin, Reason: "UNKNOWN_" + strings.ToUpper(string(origin)), Message: message}
}

func newHost(components []Component) (*host, error) {
	host := &host{}
	for _, component := range components {
		if err := component.addTo(host); err != nil {
			return nil, err
		}
	}
	if len(host.offers()) == 0 {
		return nil, notServable("there is nothing to serve; pass at least one System, MemorySystem or Evaluator")
	}
	return host, nil
}

func (h *host) offers() []*offer {
	var offers []*offer
	for _, system := range h.systems.all() {
		offers = append(offers, system.offer)
	}
	for _, memory := range h.memories.all() {
		offers = append(offers, memory.offer)
	}
	for _, evaluator := range h.evaluators.all() {
		offers = append(offers, evaluator.offer)
	}
	return offers
}

func (h *host) names() []string {
	var names []string
	for _, offer := range h.offers() {
		names = append(names, offer.name)
	}
	return names
}

// totalLimit is how many calls may run at once over all that is offered.
func (h *host) totalLimit() int {
	total := 0
	for _, offer := range h.offers() {
		total += offer.limit
	}
	return total
}

func (h *host) systemInfos() []*pb.SystemInfo {
	var infos []*pb.SystemInfo
	for _, system := range h.systems.all() {
		infos = append(infos, system.info)
	}
	return infos
}

func (h *host) memoryInfos() []*pb.SystemInfo {
	var infos []*pb.SystemInfo
	for _, memory := range h.memories.all() {
		infos = append(infos, memory.info)
	}
	return infos
}

func (h *host) evaluatorInfos() []*pb.EvaluatorInfo {
	var infos []*pb.EvaluatorInfo
	for _, evaluator := range h.evaluators.all() {
		infos = append(infos, evaluator.info)
	}
	return infos
}

// taskOf finds who answers a request, and how.
func (h *host) taskOf(callID string, request proto.Message) (*offer, answer, *Failure) {
	switch request := request.(type) {
	case *pb.ProcessRequest:
		system, failure := h.systems.find(request.GetSystem(), OriginSystem)
		if failure != nil {
			return nil, nil, failure
		}
		return system.offer, func(ctx context.Context) (proto.Message, error) { return system.process(ctx, request) }, nil
	case *pb.ProcessConversationRequest:
		system, failure := h.systems.find(request.GetSystem(), OriginSystem)
		if failure != nil {
			return nil, nil, failure
		}
		return system.offer, func(ctx context.Context) (proto.Message, error) { return system.converse(ctx, request) }, nil
	case *pb.ScoreRequest:
		evaluator, failure := h.evaluators.find(request.GetEvaluator(), OriginEvaluator)
		if failure != nil {
			return nil, nil, failure
		}
		return evaluator.offer, func(ctx context.Context) (proto.Message, error) { return evaluator.score(ctx, callID, request) }, nil
	}
	return h.memoryTaskOf(request)
}

func (h *host) memoryTaskOf(request proto.Message) (*offer, answer, *Failure) {
	named := request.(interface{ GetSystem() string })
	memory, failure := h.memories.find(named.GetSystem(), OriginSystem)
	if failure != nil {
		return nil, nil, failure
	}
	return memory.offer, func(ctx context.Context) (proto.Message, error) {
		switch request := request.(type) {
		case *pb.ResetRequest:
			return memory.reset(ctx, request)
		case *pb.IngestRequest:
			return memory.ingest(ctx, request)
		default:
			return memory.query(ctx, request.(*pb.QueryRequest))
		}
	}, nil
}

// submit starts one call, or says why not.
func (h *host) submit(
	ctx context.Context, callID string, request proto.Message, settled settled,
) (*job, *Failure) {
	offer, run, failure := h.taskOf(callID, request)
	if failure != nil {
		return nil, failure
	}
	if h.draining.Load() {
		return nil, shuttingDown(offer.origin)
	}
	return offer.submit(ctx, callID, run, settled)
}

// run makes one call and waits for its outcome.
func (h *host) run(ctx context.Context, callID string, request proto.Message) (proto.Message, *Failure) {
	type outcome struct {
		reply   proto.Message
		failure *Failure
	}
	outcomes := make(chan outcome, 1)
	_, refused := h.submit(ctx, callID, request, func(_ *job, reply proto.Message, failure *Failure) {
		outcomes <- outcome{reply, failure}
	})
	if refused != nil {
		return nil, refused
	}
	settled := <-outcomes
	return settled.reply, settled.failure
}

func checkSystem(name string, maxConcurrency int) error {
	length := utf8.RuneCountInString(name)
	if length == 0 || length > 200 || strings.Contains(name, "/") || !utf8.ValidString(name) {
		return notServable("a system has the name %q; a name is 1 to 200 characters without '/'", name)
	}
	return checkConcurrency(name, maxConcurrency)
}

func checkConcurrency(name string, maxConcurrency int) error {
	if maxConcurrency < 0 || maxConcurrency > math.MaxInt32 {
		return notServable("%q has MaxConcurrency %d; it must be at least 1, or 0 for no statement", name, maxConcurrency)
	}
	return nil
}

func systemInfo(name, version, description string, maxConcurrency int) *pb.SystemInfo {
	return &pb.SystemInfo{
		Name: name, Version: version, Description: description, MaxConcurrency: stated(maxConcurrency),
	}
}

func stated(maxConcurrency int) *int32 {
	if maxConcurrency == 0 {
		return nil
	}
	limit := int32(maxConcurrency)
	return &limit
}
