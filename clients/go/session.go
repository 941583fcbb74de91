package cbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// session is one connection of an attachment: calls come in, results go out,
// until either side ends it.
type session struct {
	attachment *Attachment
	link       *link
	lane       *lane[*pb.CallResult]
	wire       grpc.BidiStreamingClient[pb.AttachRequest, pb.AttachResponse]
	// writing keeps the messages of lane and drain apart.
	writing    sync.Mutex
	isDraining atomic.Bool
}

// runSession answers calls until either side ends the stream, and returns the
// status it ended with.
func runSession(ctx context.Context, link *link, gateway pb.GatewayClient) error {
	attachment := link.attachment
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire, err := gateway.Attach(ctx)
	if err != nil {
		return err
	}
	s := &session{attachment: attachment, link: link, wire: wire}
	s.lane = newLane(attachment.host, failedCall, func(results []*pb.CallResult) error {
		return s.write(&pb.AttachRequest{Results: results})
	})
	// Calls still in progress are dropped: the daemon asks again.
	defer s.lane.abandon()
	// A write that fails says nothing; reading tells the status.
	_ = s.write(&pb.AttachRequest{Hello: s.hello()})

	ended := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if err := s.lane.send(ctx); err == nil {
			_ = wire.CloseSend()
		}
	}()
	go func() {
		select {
		case <-attachment.stopping:
			s.drain()
		case <-ended:
		}
	}()
	err = s.read(ctx)
	close(ended)
	cancel()
	<-sent
	return err
}

func failedCall(callID string, failure *pb.Failure) *pb.CallResult {
	return &pb.CallResult{CallId: callID, Result: &pb.CallResult_Failure{Failure: failure}}
}

func (s *session) hello() *pb.Hello {
	host, limit := s.attachment.host, int32(s.attachment.limit)
	return &pb.Hello{
		Systems: host.systemInfos(), MemorySystems: host.memoryInfos(), Evaluators: host.evaluatorInfos(),
		Sdk: sdk, MaxInFlight: &limit,
	}
}

func (s *session) write(message *pb.AttachRequest) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.wire.Send(message)
}

// drain tells the daemon to send no more, and ends the stream when what is held is answered.
func (s *session) drain() {
	s.isDraining.Store(true)
	_ = s.write(&pb.AttachRequest{Drain: &pb.Drain{Reason: "the process ends"}})
	s.lane.close()
}

func (s *session) read(ctx context.Context) error {
	for {
		message, err := s.wire.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.link.heard(message)
		for _, call := range message.GetCalls() {
			s.start(ctx, call)
		}
		for _, id := range message.GetCancelCallIds() {
			s.lane.cancel(id)
		}
		if message.GetDrain() != nil {
			s.lane.close()
		}
		s.lane.backlogWritten(ctx)
	}
}

func (s *session) start(ctx context.Context, call *pb.Call) {
	id := call.GetCallId()
	request, made := workOf(call)
	switch {
	case request == nil:
		message := "this SDK does not know the work asked for; update the cbench module"
		s.lane.fail(id, &Failure{Origin: OriginSystem, Reason: "UNIMPLEMENTED", Message: message})
	case s.isDraining.Load():
		s.lane.fail(id, shuttingDown(OriginSystem))
	case s.lane.count() >= s.attachment.limit:
		message := fmt.Sprintf("more than the %d calls in flight that were announced", s.attachment.limit)
		s.lane.fail(id, &Failure{Origin: OriginSystem, Reason: "RESOURCE_EXHAUSTED", Message: message, Retryable: true})
	default:
		s.lane.start(withTrace(ctx, call), id, request, call.GetTimeout(), false, made)
	}
}

// workOf takes a call apart: what to do, and how its reply becomes a result.
func workOf(call *pb.Call) (proto.Message, func(proto.Message) *pb.CallResult) {
	result := &pb.CallResult{CallId: call.GetCallId()}
	switch work := call.GetWork().(type) {
	case *pb.Call_Process:
		return work.Process, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Process{Process: reply.(*pb.ProcessResponse)}
			return result
		}
	case *pb.Call_Converse:
		return work.Converse, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Converse{Converse: reply.(*pb.ProcessConversationResponse)}
			return result
		}
	case *pb.Call_Score:
		return work.Score, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Score{Score: reply.(*pb.ScoreResponse)}
			return result
		}
	case *pb.Call_Reset_:
		return work.Reset_, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Reset_{Reset_: reply.(*pb.ResetResponse)}
			return result
		}
	case *pb.Call_Ingest:
		if work.Ingest.GetCallId() == "" {
			work.Ingest.CallId = call.GetCallId()
		}
		return work.Ingest, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Ingest{Ingest: reply.(*pb.IngestResponse)}
			return result
		}
	case *pb.Call_Query:
		return work.Query, func(reply proto.Message) *pb.CallResult {
			result.Result = &pb.CallResult_Query{Query: reply.(*pb.QueryResponse)}
			return result
		}
	}
	return nil, nil
}
