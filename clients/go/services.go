package cbench

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// services answers the gRPC methods of what a host offers: decode, hand to the
// host, encode.
type services struct {
	host *host

	mu     sync.Mutex
	active int
	// idle is closed when the last call has ended while draining.
	idle chan struct{}
	// draining is closed when no more calls are taken.
	draining chan struct{}
}

func newServices(host *host) *services {
	return &services{host: host, idle: make(chan struct{}), draining: make(chan struct{})}
}

// addTo registers the services the host has something for, and returns their names.
func (s *services) addTo(server *grpc.Server) []string {
	var names []string
	register := func(desc grpc.ServiceDesc, service any) {
		server.RegisterService(strict(desc), service)
		names = append(names, desc.ServiceName)
	}
	if len(s.host.systems.names) > 0 {
		register(pb.System_ServiceDesc, &systemService{services: s})
	}
	if len(s.host.memories.names) > 0 {
		register(pb.MemorySystem_ServiceDesc, &memoryService{services: s})
	}
	if len(s.host.evaluators.names) > 0 {
		register(pb.Evaluator_ServiceDesc, &evaluatorService{services: s})
	}
	return names
}

// strict makes requests that cannot be decoded the caller's fault, not ours.
func strict(desc grpc.ServiceDesc) *grpc.ServiceDesc {
	methods := make([]grpc.MethodDesc, len(desc.Methods))
	for position, method := range desc.Methods {
		handle := method.Handler
		method.Handler = func(
			service any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
		) (any, error) {
			return handle(service, ctx, func(request any) error { return undecodable(decode(request)) }, interceptor)
		}
		methods[position] = method
	}
	desc.Methods = methods
	return &desc
}

func undecodable(err error) error {
	if status.Code(err) == codes.Internal {
		return status.Error(codes.InvalidArgument, status.Convert(err).Message())
	}
	return err
}

// enter counts a call in progress; the function returned ends it.
func (s *services) enter() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active--
		s.tellIfIdle()
	}
}

func (s *services) tellIfIdle() {
	if s.active > 0 || !s.host.draining.Load() {
		return
	}
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// drain takes no new calls; idle tells when those held are answered.
func (s *services) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.host.draining.Swap(true) {
		close(s.draining)
	}
	s.tellIfIdle()
}

// unary answers one request with one reply.
func unary[R proto.Message](s *services, ctx context.Context, callID string, request proto.Message) (R, error) {
	defer s.enter()()
	reply, failure := s.host.run(ctx, callID, request)
	if failure != nil {
		var none R
		return none, statusOf(ctx, failure)
	}
	return reply.(R), nil
}

// streamedCall is one call of a stream, taken out of its message.
type streamedCall[O proto.Message] struct {
	id      string
	request proto.Message
	timeout *durationpb.Duration
	trace   traced
	made    func(reply proto.Message) O
}

// stream answers the calls of a stream, in any order, until the peer ends it.
// What receive returns is one message, taken apart.
func stream[O proto.Message](
	s *services, ctx context.Context, lane *lane[O], receive func() ([]streamedCall[O], []string, error),
) error {
	defer s.enter()()
	ended := make(chan error, 1)
	go func() {
		ended <- read(ctx, lane, receive)
		lane.close()
	}()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-s.draining:
			lane.close()
		case <-stopped:
		}
	}()
	defer lane.abandon()
	if err := lane.send(ctx); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return err
	default:
		// Only draining closes a lane whose reader still reads.
		return statusOf(ctx, shuttingDown(OriginSystem))
	}
}

func read[O proto.Message](
	ctx context.Context, lane *lane[O], receive func() ([]streamedCall[O], []string, error),
) error {
	for {
		calls, cancelled, err := receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return undecodable(err)
		}
		hasRoom := true
		for _, call := range calls {
			// If no room came, the rest of the message gets none.
			hasRoom = lane.start(withTrace(ctx, call.trace), call.id, call.request, call.timeout, hasRoom, call.made) && hasRoom
		}
		for _, id := range cancelled {
			lane.cancel(id)
		}
		lane.backlogWritten(ctx)
	}
}

type systemService struct {
	pb.UnimplementedSystemServer
	*services
}

func (s *systemService) Describe(context.Context, *pb.SystemDescribeRequest) (*pb.SystemDescribeResponse, error) {
	return &pb.SystemDescribeResponse{Systems: s.host.systemInfos(), Sdk: sdk}, nil
}

func (s *systemService) Process(ctx context.Context, request *pb.ProcessRequest) (*pb.ProcessResponse, error) {
	return unary[*pb.ProcessResponse](s.services, ctx, request.GetCallId(), request)
}

func (s *systemService) ProcessConversation(
	ctx context.Context, request *pb.ProcessConversationRequest,
) (*pb.ProcessConversationResponse, error) {
	return unary[*pb.ProcessConversationResponse](s.services, ctx, request.GetCallId(), request)
}

func (s *systemService) ProcessStream(wire grpc.BidiStreamingServer[pb.ProcessStreamRequest, pb.ProcessStreamResponse]) error {
	lane := newLane(s.host,
		func(callID string, failure *pb.Failure) *pb.ProcessOutcome {
			return &pb.ProcessOutcome{CallId: callID, Result: &pb.ProcessOutcome_Failure{Failure: failure}}
		},
		func(outcomes []*pb.ProcessOutcome) error {
			return wire.Send(&pb.ProcessStreamResponse{Outcomes: outcomes})
		})
	return stream(s.services, wire.Context(), lane, func() ([]streamedCall[*pb.ProcessOutcome], []string, error) {
		message, err := wire.Recv()
		calls := make([]streamedCall[*pb.ProcessOutcome], len(message.GetCalls()))
		for position, call := range message.GetCalls() {
			id := call.GetRequest().GetCallId()
			calls[position] = streamedCall[*pb.ProcessOutcome]{
				id, call.GetRequest(), call.GetTimeout(), call, func(reply proto.Message) *pb.ProcessOutcome {
					result := &pb.ProcessOutcome_Response{Response: reply.(*pb.ProcessResponse)}
					return &pb.ProcessOutcome{CallId: id, Result: result}
				},
			}
		}
		return calls, message.GetCancelCallIds(), err
	})
}

type memoryService struct {
	pb.UnimplementedMemorySystemServer
	*services
}

func (s *memoryService) Describe(
	context.Context, *pb.MemorySystemDescribeRequest,
) (*pb.MemorySystemDescribeResponse, error) {
	return &pb.MemorySystemDescribeResponse{Systems: s.host.memoryInfos(), Sdk: sdk}, nil
}

func (s *memoryService) Reset(ctx context.Context, request *pb.ResetRequest) (*pb.ResetResponse, error) {
	return unary[*pb.ResetResponse](s.services, ctx, "", request)
}

func (s *memoryService) Ingest(ctx context.Context, request *pb.IngestRequest) (*pb.IngestResponse, error) {
	return unary[*pb.IngestResponse](s.services, ctx, request.GetCallId(), request)
}

func (s *memoryService) Query(ctx context.Context, request *pb.QueryRequest) (*pb.QueryResponse, error) {
	return unary[*pb.QueryResponse](s.services, ctx, request.GetCallId(), request)
}

type evaluatorService struct {
	pb.UnimplementedEvaluatorServer
	*services
}

func (s *evaluatorService) Describe(
	context.Context, *pb.EvaluatorDescribeRequest,
) (*pb.EvaluatorDescribeResponse, error) {
	return &pb.EvaluatorDescribeResponse{Evaluators: s.host.evaluatorInfos(), Sdk: sdk}, nil
}

func (s *evaluatorService) Score(ctx context.Context, request *pb.ScoreRequest) (*pb.ScoreResponse, error) {
	return unary[*pb.ScoreResponse](s.services, ctx, "", request)
}

func (s *evaluatorService) ScoreStream(wire grpc.BidiStreamingServer[pb.ScoreStreamRequest, pb.ScoreStreamResponse]) error {
	lane := newLane(s.host,
		func(callID string, failure *pb.Failure) *pb.ScoreOutcome {
			return &pb.ScoreOutcome{CallId: callID, Result: &pb.ScoreOutcome_Failure{Failure: failure}}
		},
		func(outcomes []*pb.ScoreOutcome) error {
			return wire.Send(&pb.ScoreStreamResponse{Outcomes: outcomes})
		})
	return stream(s.services, wire.Context(), lane, func() ([]streamedCall[*pb.ScoreOutcome], []string, error) {
		message, err := wire.Recv()
		calls := make([]streamedCall[*pb.ScoreOutcome], len(message.GetCalls()))
		for position, call := range message.GetCalls() {
			id := call.GetCallId()
			calls[position] = streamedCall[*pb.ScoreOutcome]{
				id, call.GetRequest(), call.GetTimeout(), call, func(reply proto.Message) *pb.ScoreOutcome {
					result := &pb.ScoreOutcome_Response{Response: reply.(*pb.ScoreResponse)}
					return &pb.ScoreOutcome{CallId: id, Result: result}
				},
			}
		}
		return calls, message.GetCancelCallIds(), err
	})
}
