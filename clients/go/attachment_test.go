package cbench

import (
	"context"
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// gateway is a daemon that does with each attachment what the test says.
type gateway struct {
	pb.UnimplementedGatewayServer
	attached chan *attached
}

type attached struct {
	pb.Gateway_AttachServer
	hello *pb.Hello
	end   chan error
}

func (g *gateway) Attach(wire pb.Gateway_AttachServer) error {
	message, err := wire.Recv()
	if err != nil {
		return err
	}
	a := &attached{wire, message.GetHello(), make(chan error, 1)}
	g.attached <- a
	select {
	case err := <-a.end:
		return err
	case <-wire.Context().Done():
		return wire.Context().Err()
	}
}

func startedGateway(t *testing.T) (*gateway, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{attached: make(chan *attached, 10)}
	server := grpc.NewServer()
	pb.RegisterGatewayServer(server, g)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return g, listener.Addr().String()
}

func attaching(t *testing.T, address string, options ...AttachOption) *Attachment {
	t.Helper()
	attachment, err := NewAttachment(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	attachment.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = attachment.Stop(ctx)
	})
	return attachment
}

func (a *attached) say(t *testing.T, message *pb.AttachResponse) {
	t.Helper()
	if err := a.Send(message); err != nil {
		t.Fatal(err)
	}
}

func (a *attached) hear(t *testing.T) *pb.AttachRequest {
	t.Helper()
	message, err := a.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

var welcome = &pb.AttachResponse{Welcome: &pb.Welcome{AttachmentId: "a"}}

func work(id string) *pb.Call {
	return &pb.Call{CallId: id, Work: &pb.Call_Process{Process: asked(id, nil)}}
}

func TestAnAttachmentSaysWhatItOffersAndAnswersCalls(t *testing.T) {
	g, address := startedGateway(t)
	attachment := attaching(t, address, passes("s"), lengthEvaluator(), WithMaxInFlight(7))
	a := await(t, g.attached, "the attachment")
	hello := a.hello
	if hello.GetSystems()[0].GetName() != "s" || hello.GetEvaluators()[0].GetName() != "length" ||
		hello.GetSdk() != "cbench-go/0.1.0" || hello.GetMaxInFlight() != 7 {
		t.Errorf("got %v", hello)
	}
	a.say(t, welcome)
	if err := attachment.WaitAttached(within(t)); err != nil {
		t.Fatal(err)
	}
	score := &pb.Call{CallId: "2", Work: &pb.Call_Score{Score: pair()}}
	a.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("1"), score, {CallId: "3"}}})
	got := map[string]*pb.CallResult{}
	for len(got) < 3 {
		for _, result := range a.hear(t).GetResults() {
			got[result.GetCallId()] = result
		}
	}
	if got["1"].GetProcess() == nil || got["2"].GetScore() == nil || got["3"].GetFailure().GetReason() != "UNIMPLEMENTED" {
		t.Errorf("got %v", got)
	}
}

func TestABrokenAttachmentCancelsItsCallsAndIsRenewed(t *testing.T) {
	g, address := startedGateway(t)
	h := newHeld()
	attaching(t, address, System{Name: "s", Process: h.process})
	first := await(t, g.attached, "the attachment")
	first.say(t, welcome)
	first.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("1")}})
	await(t, h.running, "the call")
	first.end <- status.Error(codes.Unavailable, "going away")
	if err := await(t, h.ended, "the end of user code"); !errors.Is(err, context.Canceled) {
		t.Errorf("user code saw %v", err)
	}
	// The daemon has not noticed yet that the name is free.
	await(t, g.attached, "another try").end <- status.Error(codes.AlreadyExists, "the name is taken")
	third := await(t, g.attached, "one more try")
	third.say(t, welcome)
	third.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("1")}})
	await(t, h.running, "the call, again")
	close(h.released)
	if result := third.hear(t).GetResults()[0]; result.GetProcess() == nil {
		t.Errorf("got %v", result)
	}
}

func TestARefusalForGoodEndsTheAttachment(t *testing.T) {
	for _, code := range []codes.Code{codes.AlreadyExists, codes.Unauthenticated, codes.InvalidArgument} {
		g, address := startedGateway(t)
		attachment := attaching(t, address, passes("s"))
		await(t, g.attached, "the attachment").end <- status.Error(code, "no")
		err := attachment.WaitAttached(within(t))
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("got %v", err)
		}
	}
}

func TestStoppingDrains(t *testing.T) {
	g, address := startedGateway(t)
	h := newHeld()
	attachment := attaching(t, address, System{Name: "s", Process: h.process})
	a := await(t, g.attached, "the attachment")
	a.say(t, welcome)
	a.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("1")}})
	await(t, h.running, "the call")
	ended := make(chan error, 1)
	go func() { ended <- attachment.Stop(within(t)) }()
	if a.hear(t).GetDrain() == nil {
		t.Error("no drain was sent")
	}
	a.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("2")}})
	if result := a.hear(t).GetResults()[0]; result.GetFailure().GetReason() != "UNAVAILABLE" {
		t.Errorf("got %v", result)
	}
	close(h.released)
	if result := a.hear(t).GetResults()[0]; result.GetCallId() != "1" || result.GetProcess() == nil {
		t.Errorf("got %v", result)
	}
	a.end <- nil
	if err := await(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}

func TestMoreCallsThanAnnouncedAreRefused(t *testing.T) {
	g, address := startedGateway(t)
	h := newHeld()
	attaching(t, address, System{Name: "s", Process: h.process}, WithMaxInFlight(1))
	a := await(t, g.attached, "the attachment")
	a.say(t, welcome)
	a.say(t, &pb.AttachResponse{Calls: []*pb.Call{work("1"), work("2")}})
	result := a.hear(t).GetResults()[0]
	if result.GetCallId() != "2" || result.GetFailure().GetReason() != "RESOURCE_EXHAUSTED" || !result.GetFailure().GetRetryable() {
		t.Errorf("got %v", result)
	}
}

func TestADrainByTheDaemonEndsTheStreamAndAttachesAgain(t *testing.T) {
	g, address := startedGateway(t)
	attaching(t, address, passes("s"))
	a := await(t, g.attached, "the attachment")
	a.say(t, welcome)
	a.say(t, &pb.AttachResponse{Drain: &pb.Drain{}})
	if _, err := a.Recv(); err == nil {
		t.Error("the stream was not ended")
	}
	a.end <- nil
	await(t, g.attached, "the next attachment")
}

func TestAnAttachmentMayBeStoppedBeforeItsStart(t *testing.T) {
	attachment, err := NewAttachment("127.0.0.1:1", passes("s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := attachment.Stop(within(t)); err != nil {
		t.Error(err)
	}
}
