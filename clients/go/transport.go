package cbench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// ServerTLS reads a certificate and its key from PEM files, for [WithTLS].
// Unless clientCAFile is empty, callers must have a certificate signed by it.
// The error is a [*CannotServeError].
func ServerTLS(certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, cannotServe("cannot use the certificate %s with the key %s: %w", certFile, keyFile, err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	if clientCAFile != "" {
		authorities, err := readAuthorities(clientCAFile)
		if err != nil {
			return nil, cannotServe("%w", err)
		}
		config.ClientCAs, config.ClientAuth = authorities, tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// ClientTLS reads what a client needs from PEM files, for [WithTLS]. Everything
// may be empty: caFile means the authorities this machine trusts, certFile and
// keyFile no client certificate, serverName the name in the address.
func ClientTLS(caFile, certFile, keyFile, serverName string) (*tls.Config, error) {
	config := &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS12}
	if caFile != "" {
		authorities, err := readAuthorities(caFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = authorities
	}
	if certFile != "" || keyFile != "" {
		certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot use the certificate %s with the key %s: %w", certFile, keyFile, err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

func readAuthorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no PEM certificate", file)
	}
	return pool, nil
}

// dial opens a connection to target, or to the first of several that answers;
// nothing is sent before the first call.
func dial(target string, s *settings) (*grpc.ClientConn, error) {
	addresses := addressesOf(target)
	for _, address := range addresses {
		if s.token != "" && s.tls == nil && !isLoopback(address) {
			return nil, &InsecureTokenError{Target: address}
		}
	}
	secure := insecure.NewCredentials()
	if s.tls != nil {
		secure = credentials.NewTLS(s.tls)
	}
	pause := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(secure),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(maxMessageBytes), grpc.MaxCallSendMsgSize(maxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: 5 * time.Second}),
		grpc.WithNoProxy(),
		// Retries are the caller's, who knows the deadline and the call id.
		grpc.WithDisableRetry(),
	}
	if s.token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(s.token)))
	}
	if len(addresses) > 1 {
		several, more := firstAnswering(addresses)
		target, options = several, append(options, more...)
	}
	connection, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address to dial: %w", target, err)
	}
	return connection, nil
}

// bearer sends a token with every call. Whether it may travel unencrypted was
// decided when dialling.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (b bearer) RequireTransportSecurity() bool { return false }

// isLoopback reports whether an address cannot leave this machine.
func isLoopback(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	for _, scheme := range []string{"dns:///", "dns:", "passthrough:///", "ipv4:", "ipv6:"} {
		address = strings.TrimPrefix(address, scheme)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
