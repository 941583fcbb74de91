package cbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
)

// mostInFlight is announced if no limit is set and more could run.
const mostInFlight = 256

// Attachment offers components to a daemon that cannot dial this process, by
// dialling it. A broken connection is renewed for as long as it takes.
type Attachment struct {
	daemon   string
	settings *settings
	host     *host
	limit    int

	// stopping is closed to drain, ended when it is over.
	stopping chan struct{}
	stopOnce sync.Once
	ended    chan struct{}
	err      error
	// cancel is nil until the start.
	cancel context.CancelFunc
	// welcomed is closed at the first welcome.
	welcomed    chan struct{}
	welcomeOnce sync.Once
}

// NewAttachment prepares an attachment to the daemon at an address. Pass what
// to offer, and options. Several daemons of one store are named with commas,
// "host:a,host:b": it is attached to all of them.
func NewAttachment(daemon string, options ...AttachOption) (*Attachment, error) {
	s := &settings{grace: grace}
	for _, option := range options {
		option.applyToAttach(s)
	}
	host, err := newHost(s.components)
	if err != nil {
		return nil, err
	}
	if s.maxInFlight < 0 {
		return nil, notServable("WithMaxInFlight got %d; it must be at least 1", s.maxInFlight)
	}
	// Never more than run and wait here, or the daemon would be refused.
	most := min(host.totalLimit(), math.MaxInt32/(1+queueFactor)) * (1 + queueFactor)
	most = max(1, most/len(addressesOf(daemon)))
	limit := s.maxInFlight
	if limit == 0 {
		limit = min(host.totalLimit(), mostInFlight)
	}
	return &Attachment{
		daemon: daemon, settings: s, host: host, limit: min(limit, most),
		stopping: make(chan struct{}), ended: make(chan struct{}), welcomed: make(chan struct{}),
	}, nil
}

// Names returns the names of everything offered.
func (a *Attachment) Names() []string { return a.host.names() }

// Start starts dialling, and goes on until Stop or a final refusal.
func (a *Attachment) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() {
		defer cancel()
		a.err = a.keepAttached(ctx, cancel)
		close(a.ended)
	}()
}

// WaitAttached waits for the daemon's first welcome. The error is a
// [*RefusedError] if the daemon declines.
func (a *Attachment) WaitAttached(ctx context.Context) error {
	select {
	case <-a.welcomed:
		return nil
	case <-a.ended:
		if a.err != nil {
			return a.err
		}
		return fmt.Errorf("never attached to %s", a.daemon)
	case <-ctx.Done():
		return fmt.Errorf("not attached to %s: %w", a.daemon, ctx.Err())
	}
}

// Done is closed when the attachment is over; Err then says why.
func (a *Attachment) Done() <-chan struct{} { return a.ended }

// Err returns why the daemon refused the attachment, after Done is
// closed; nil if it was stopped.
func (a *Attachment) Err() error {
	select {
	case <-a.ended:
		return a.err
	default:
		return nil
	}
}

// Stop takes no more calls, waits for those in progress until ctx ends, and ends
// the attachment. The error says that calls were given up.
func (a *Attachment) Stop(ctx context.Context) error {
	a.stopOnce.Do(func() { close(a.stopping) })
	if a.cancel == nil {
		return nil
	}
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		a.cancel()
		<-a.ended
		return errors.New("calls in progress did not end in time and are given up")
	}
}

// Attach attaches until SIGINT or SIGTERM or the end of ctx, then finishes the
// calls in progress and returns nil. A broken connection is renewed for as long
// as it takes. The error is a [*RefusedError] if the daemon refuses it.
func Attach(ctx context.Context, daemon string, options ...AttachOption) error {
	attachment, err := NewAttachment(daemon, options...)
	if err != nil {
		return err
	}
	ctx, stop := endingOnSignals(ctx)
	defer stop()
	attachment.Start()
	select {
	case <-attachment.Done():
		return attachment.Err()
	case <-ctx.Done():
	}
	graceful, cancel := context.WithTimeout(context.Background(), attachment.settings.grace)
	defer cancel()
	if err := attachment.Stop(graceful); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return nil
}

func (a *Attachment) isStopping() bool {
	select {
	case <-a.stopping:
		return true
	default:
		return false
	}
}

// keepAttached stays attached to every daemon; one that refuses for good ends it all.
func (a *Attachment) keepAttached(ctx context.Context, cancel context.CancelFunc) error {
	daemons := addressesOf(a.daemon)
	ended := make(chan error, len(daemons))
	for _, daemon := range daemons {
		go func() { ended <- (&link{attachment: a, daemon: daemon}).keep(ctx) }()
	}
	var refusal error
	for range daemons {
		if err := <-ended; err != nil && refusal == nil {
			refusal = err
			a.stopOnce.Do(func() { close(a.stopping) })
			cancel()
		}
	}
	return refusal
}
