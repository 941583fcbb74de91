package cbench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

func passes(name string) System {
	return System{Name: name, Process: func(_ context.Context, e Example) (Example, error) { return e, nil }}
}

func TestWhatCannotBeServedIsRefusedWithTheReason(t *testing.T) {
	taken := started(t, passes("s")).Address()
	cases := map[string]struct {
		options []ServeOption
		says    string
	}{
		"nothing":         {nil, "nothing to serve"},
		"no name":         {[]ServeOption{passes("")}, `the name ""`},
		"a slash":         {[]ServeOption{passes("a/b")}, `"a/b"`},
		"the same twice":  {[]ServeOption{passes("s"), passes("s")}, `two systems are called "s"`},
		"no function":     {[]ServeOption{System{Name: "s"}}, "no Process"},
		"a limit below 0": {[]ServeOption{System{Name: "s", MaxConcurrency: -1, Process: passes("").Process}}, "-1"},
		"an evaluator's name": {
			[]ServeOption{Evaluator{Name: "Loud"}}, `"Loud"`,
		},
		"an open address": {[]ServeOption{passes("s"), WithAddress("0.0.0.0:0")}, "WithTLS and WithToken"},
		"no port":         {[]ServeOption{passes("s"), WithAddress("localhost")}, "has no port"},
		"a taken port":    {[]ServeOption{passes("s"), WithAddress(taken)}, "cannot listen on " + taken},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := NewServer(each.options...); err == nil || !strings.Contains(err.Error(), each.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestHealthIsServingUntilTheDrain(t *testing.T) {
	h := newHeld()
	server := started(t, System{Name: "s", Process: h.process})
	connection := connected(t, server)
	health := healthpb.NewHealthClient(connection)
	for _, service := range []string{"", "cbench.v1.System"} {
		response, err := health.Check(within(t), &healthpb.HealthCheckRequest{Service: service})
		if err != nil || response.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v, %v", service, response, err)
		}
	}
	if _, err := health.Check(within(t), &healthpb.HealthCheckRequest{Service: "cbench.v1.Evaluator"}); status.Code(err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
	go pb.NewSystemClient(connection).Process(within(t), asked("1", nil))
	await(t, h.running, "a call in progress")
	ended := make(chan error, 1)
	go func() { ended <- server.Shutdown(within(t)) }()
	await(t, server.services.draining, "the drain")
	response, err := health.Check(within(t), &healthpb.HealthCheckRequest{})
	if err != nil || response.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("while draining: %v, %v", response, err)
	}
	close(h.released)
	if err := await(t, ended, "the end"); err != nil {
		t.Error(err)
	}
}

func TestACallThatDoesNotEndIsGivenUpAfterTheGrace(t *testing.T) {
	h := newHeld()
	server := started(t, System{Name: "s", Process: h.process})
	go pb.NewSystemClient(connected(t, server)).Process(within(t), asked("1", nil))
	await(t, h.running, "a call in progress")
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := server.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("got %v", err)
	}
	if err := await(t, h.ended, "the end of user code"); err == nil {
		t.Error("user code was not told")
	}
}

func TestAServerMayBeShutDownTwiceAndBeforeItsStart(t *testing.T) {
	address := heldAddress(t)
	server, err := NewServer(passes("s"), WithAddress(address))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := server.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
	}
	// Its port is free again.
	started(t, passes("s"), WithAddress(address))
}

func TestReflectionListsTheServices(t *testing.T) {
	connection := connected(t, started(t, passes("s"), lengthEvaluator()))
	stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(within(t))
	if err != nil {
		t.Fatal(err)
	}
	list := &reflectionpb.ServerReflectionRequest_ListServices{}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: list}); err != nil {
		t.Fatal(err)
	}
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	text := response.String()
	for _, name := range []string{"cbench.v1.System", "cbench.v1.Evaluator", "grpc.health.v1.Health"} {
		if !strings.Contains(text, name) {
			t.Errorf("no %s in %s", name, text)
		}
	}
}

func TestATokenIsDemandedOfEverythingButHealth(t *testing.T) {
	server := started(t, passes("s"), WithToken("secret"))
	for token, code := range map[string]codes.Code{"": codes.Unauthenticated, "wrong": codes.Unauthenticated, "secret": codes.OK} {
		connection, err := dial(server.Address(), &settings{token: token})
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		_, err = pb.NewSystemClient(connection).Process(within(t), asked("1", nil))
		if status.Code(err) != code {
			t.Errorf("with %q: %v", token, err)
		}
		if _, err := healthpb.NewHealthClient(connection).Check(within(t), &healthpb.HealthCheckRequest{}); err != nil {
			t.Errorf("health with %q: %v", token, err)
		}
	}
}

func TestATokenDoesNotTravelInTheClearOverANetwork(t *testing.T) {
	if _, err := NewClient("bench.example:50051", WithToken("secret")); err == nil || !strings.Contains(err.Error(), "WithTLS") {
		t.Errorf("got %v", err)
	}
}

// certificates writes an authority with a certificate for the loopback, and returns their paths.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: made}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, cert, key
}

func TestTLSAndMutualTLS(t *testing.T) {
	ca, cert, key := certificates(t)
	for name, each := range map[string]struct {
		demand, cert, key string
		works             bool
	}{
		"tls":                   {"", "", "", true},
		"mutual":                {ca, cert, key, true},
		"no client certificate": {ca, "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := ServerTLS(cert, key, each.demand)
			if err != nil {
				t.Fatal(err)
			}
			server := started(t, passes("s"), WithTLS(config))
			ours, err := ClientTLS(ca, each.cert, each.key, "")
			if err != nil {
				t.Fatal(err)
			}
			connection, err := dial(server.Address(), &settings{tls: ours})
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			_, err = pb.NewSystemClient(connection).Process(within(t), asked("1", nil))
			if (err == nil) != each.works {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := ServerTLS("absent.pem", key, ""); err == nil || !strings.Contains(err.Error(), "absent.pem") {
		t.Errorf("got %v", err)
	}
}

func TestASocketLeftByADeadServerIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	// As a killed process does, it leaves its file.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	listener.Close()
	server := started(t, passes("s"), WithAddress("unix:"+path))
	if _, err := pb.NewSystemClient(connected(t, server)).Process(within(t), asked("1", nil)); err != nil {
		t.Error(err)
	}
	if _, err := NewServer(passes("s"), WithAddress("unix:"+path)); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("got %v", err)
	}
}
