package cbench

import (
	"crypto/tls"
	"time"
)

// grace is how long calls in progress may take to finish, unless told otherwise.
const grace = 20 * time.Second

// ServeOption configures [Serve] and [NewServer].
type ServeOption interface{ applyToServe(*settings) }

// AttachOption configures [Attach] and [NewAttachment].
type AttachOption interface{ applyToAttach(*settings) }

// ClientOption configures [NewClient].
type ClientOption interface{ applyToClient(*settings) }

// Option configures all three.
type Option func(*settings)

func (o Option) applyToServe(s *settings)  { o(s) }
func (o Option) applyToAttach(s *settings) { o(s) }
func (o Option) applyToClient(s *settings) { o(s) }

type settings struct {
	components  []Component
	address     string
	tls         *tls.Config
	token       string
	isUnsafe    bool
	grace       time.Duration
	maxInFlight int
	timeout     time.Duration
}

// WithTLS secures the connection; see [ServerTLS] and [ClientTLS].
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.tls = config }
}

// WithToken is the bearer token that a server demands, except for health, and
// that a client sends.
func WithToken(token string) Option {
	return func(s *settings) { s.token = token }
}

type serveOption func(*settings)

func (o serveOption) applyToServe(s *settings) { o(s) }

// WithAddress is where to serve: `host:port`, or `unix:/path`. Port 0, the
// default on 127.0.0.1, takes a free one.
func WithAddress(address string) ServeOption {
	return serveOption(func(s *settings) { s.address = address })
}

// WithUnsafe allows a network address without TLS and token.
func WithUnsafe() ServeOption {
	return serveOption(func(s *settings) { s.isUnsafe = true })
}

// DrainOption configures the end of [Serve], [NewServer], [Attach] and [NewAttachment].
type DrainOption func(*settings)

func (o DrainOption) applyToServe(s *settings)  { o(s) }
func (o DrainOption) applyToAttach(s *settings) { o(s) }

// WithGrace is how long calls in progress may take to finish at the end. The
// default is 20 seconds.
func WithGrace(grace time.Duration) DrainOption {
	return func(s *settings) { s.grace = grace }
}

type attachOption func(*settings)

func (o attachOption) applyToAttach(s *settings) { o(s) }

// WithMaxInFlight is how many calls the daemon may have outstanding here at
// once. The default, also for 0, is as many as run, at most 256.
func WithMaxInFlight(calls int) AttachOption {
	return attachOption(func(s *settings) { s.maxInFlight = calls })
}

type clientOption func(*settings)

func (o clientOption) applyToClient(s *settings) { o(s) }

// WithTimeout bounds single requests of a [Client]; following a run has no end
// of its own. The default is 30 seconds.
func WithTimeout(timeout time.Duration) ClientOption {
	return clientOption(func(s *settings) { s.timeout = timeout })
}

func (s System) applyToServe(to *settings)        { to.components = append(to.components, s) }
func (s System) applyToAttach(to *settings)       { to.components = append(to.components, s) }
func (m MemorySystem) applyToServe(to *settings)  { to.components = append(to.components, m) }
func (m MemorySystem) applyToAttach(to *settings) { to.components = append(to.components, m) }
func (e Evaluator) applyToServe(to *settings)     { to.components = append(to.components, e) }
func (e Evaluator) applyToAttach(to *settings)    { to.components = append(to.components, e) }
