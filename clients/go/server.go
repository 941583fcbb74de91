package cbench

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// Server serves components over gRPC, for tests and larger programs.
type Server struct {
	settings *settings
	host     *host
	services *services
	health   *health.Server
	grpc     *grpc.Server
	listener net.Listener
	ended    chan error
}

// NewServer opens the socket, without answering yet. Pass what to serve, and options.
func NewServer(options ...ServeOption) (*Server, error) {
	s := &settings{address: "127.0.0.1:0", grace: grace}
	for _, option := range options {
		option.applyToServe(s)
	}
	host, err := newHost(s.components)
	if err != nil {
		return nil, err
	}
	listener, err := listen(s)
	if err != nil {
		return nil, err
	}
	server := &Server{
		settings: s, host: host, services: newServices(host), health: health.NewServer(),
		grpc: grpc.NewServer(serverOptions(s)...), listener: listener, ended: make(chan error, 1),
	}
	for _, name := range server.services.addTo(server.grpc) {
		server.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(server.grpc, server.health)
	reflection.Register(server.grpc)
	return server, nil
}

// Address returns where the server listens, as callers dial it.
func (s *Server) Address() string { return realAddress(s.settings.address, s.listener) }

// Names returns the names of all that is served.
func (s *Server) Names() []string { return s.host.names() }

// Start starts answering, and returns.
func (s *Server) Start() {
	go func() { s.ended <- s.grpc.Serve(s.listener) }()
}

// Shutdown takes no more calls, waits for those in progress until ctx ends, and
// ends the server. The error says that calls were given up.
func (s *Server) Shutdown(ctx context.Context) error {
	s.health.Shutdown()
	s.services.drain()
	var err error
	// Health is answered until the last call is, so that a draining
	// server is not taken for a dead one.
	select {
	case <-s.services.idle:
	case <-ctx.Done():
		err = errors.New("calls in progress did not end in time and are given up")
	}
	// Streams of health and reflection do not end by themselves.
	timer := time.AfterFunc(200*time.Millisecond, s.grpc.Stop)
	defer timer.Stop()
	s.grpc.GracefulStop()
	// A server that was never started still holds its socket.
	s.listener.Close()
	return err
}

// Serve serves until SIGINT or SIGTERM or the end of ctx, then finishes the
// calls in progress and returns nil. A second signal ends the process at once.
//
// On port 0, or with CBENCH_HANDSHAKE=1 in the environment, one line on stdout
// says where: `cbench|1|tcp|127.0.0.1:40123`. Until Serve
// returns, os.Stdout then is os.Stderr, because stdout may no longer be read.
func Serve(ctx context.Context, options ...ServeOption) error {
	ctx, stop := endingOnSignals(ctx)
	defer stop()
	server, err := NewServer(options...)
	if err != nil {
		return err
	}
	defer handshake(server.settings.address, server.Address())()
	fmt.Fprintf(os.Stderr, "serving %s on %s\n", strings.Join(server.Names(), ", "), server.Address())
	server.Start()
	select {
	case err := <-server.ended:
		return fmt.Errorf("the server on %s ended: %w", server.Address(), err)
	case <-ctx.Done():
	}
	graceful, cancel := context.WithTimeout(context.Background(), server.settings.grace)
	defer cancel()
	if err := server.Shutdown(graceful); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return nil
}

// Main is [Serve] for a main function: where serving is impossible, it says so
// and ends the process. More components may stand among the options.
func Main(component Component, options ...ServeOption) {
	if err := Serve(context.Background(), append([]ServeOption{component}, options...)...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// endingOnSignals ends the context on the first SIGINT or SIGTERM, and the
// process on the second.
func endingOnSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-signals:
		case <-stopped:
			return
		}
		fmt.Fprintln(os.Stderr, "finishing the calls in progress; once more to stop at once")
		cancel()
		select {
		case second := <-signals:
			number, _ := second.(syscall.Signal)
			os.Exit(128 + int(number))
		case <-stopped:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(stopped)
		cancel()
	}
}

func serverOptions(s *settings) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(maxMessageBytes),
		grpc.MaxSendMsgSize(maxMessageBytes),
		// Callers keep idle connections alive by pings; the default calls that abuse.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	}
	if s.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.tls)))
	}
	if s.token != "" {
		// Before a message is read, unlike an interceptor.
		options = append(options, grpc.InTapHandle(tokenCheck(s.token)))
	}
	return options
}

// tokenCheck refuses calls without the token, except to ask for health.
func tokenCheck(token string) tap.ServerInHandle {
	expected := []byte("Bearer " + token)
	return func(ctx context.Context, call *tap.Info) (context.Context, error) {
		if strings.HasPrefix(call.FullMethodName, "/"+healthpb.Health_ServiceDesc.ServiceName+"/") {
			return ctx, nil
		}
		for _, given := range call.Header.Get("authorization") {
			if subtle.ConstantTimeCompare([]byte(given), expected) == 1 {
				return ctx, nil
			}
		}
		return nil, status.Error(codes.Unauthenticated, "a bearer token is needed in `authorization`")
	}
}
