package cbench

import (
	"context"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

// addressesOf returns the addresses of a target, in the order in which they are
// preferred. Several daemons of one store are named with commas.
func addressesOf(target string) []string {
	var addresses []string
	for _, address := range strings.Split(target, ",") {
		if address = strings.TrimSpace(address); address != "" {
			addresses = append(addresses, address)
		}
	}
	if len(addresses) == 0 {
		return []string{target}
	}
	return addresses
}

// firstAnswering lets gRPC connect to the first of several addresses that answers,
// and to the next when that one is lost.
func firstAnswering(addresses []string) (target string, options []grpc.DialOption) {
	state := resolver.State{}
	for _, address := range addresses {
		// The name that its certificate must have is its own.
		name, _, err := net.SplitHostPort(address)
		if err != nil {
			name = address
		}
		state.Addresses = append(state.Addresses, resolver.Address{Addr: address, ServerName: name})
	}
	known := manual.NewBuilderWithScheme("cbench")
	known.InitialState(state)
	return "cbench:///" + addresses[0], []grpc.DialOption{
		grpc.WithResolvers(known), grpc.WithUnaryInterceptor(askElsewhere(len(addresses))),
	}
}

// askElsewhere makes a request again that was lost with its daemon, at the next one.
func askElsewhere(daemons int) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		var err error
		for range daemons {
			err = invoke(ctx, method, request, reply, connection, options...)
			// Done a second time, these two would find nothing left to do, and say so.
			isRepeated := method != pb.Bench_DeleteRun_FullMethodName && method != pb.Bench_PruneRuns_FullMethodName
			if status.Code(err) != codes.Unavailable || !isRepeated || ctx.Err() != nil {
				return err
			}
		}
		return err
	}
}
