package cbench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

const (
	backoffMin = 100 * time.Millisecond
	backoffMax = 10 * time.Second
	// staleName is how long a daemon may take to notice that our last connection is dead.
	staleName = 30 * time.Second
	// mostInFlight is announced if no limit is set and more could run.
	mostInFlight = 256
)

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
	welcomed  chan struct{}
	failures  int
	lastHeard time.Time
}

// NewAttachment prepares an attachment to the daemon at an address. Pass what
// to offer, and options.
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
		a.err = a.keepAttached(ctx)
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

func (a *Attachment) keepAttached(ctx context.Context) error {
	connection, err := dial(a.daemon, a.settings)
	if err != nil {
		return err
	}
	defer connection.Close()
	gateway := pb.NewGatewayClient(connection)
	for !a.isStopping() {
		err := runSession(ctx, a, gateway)
		if refusal := a.judge(err); refusal != nil {
			return refusal
		}
		// Full jitter, so that many processes do not come back in step.
		longest := min(backoffMax, backoffMin<<a.failures)
		a.failures = min(a.failures+1, 10)
		pause := time.NewTimer(backoffMin/2 + rand.N(longest-backoffMin/2))
		select {
		case <-pause.C:
		case <-a.stopping:
		}
		pause.Stop()
	}
	return nil
}

// judge returns a refusal if trying again cannot help, else says what happened.
func (a *Attachment) judge(err error) error {
	if err == nil {
		return nil
	}
	told := status.Convert(err)
	isFinal := false
	switch told.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented, codes.FailedPrecondition:
		isFinal = true
	case codes.AlreadyExists:
		isFinal = a.lastHeard.IsZero() || time.Since(a.lastHeard) > staleName
	}
	if isFinal {
		message := fmt.Sprintf("%s refused the attachment of %s: %s", a.daemon, strings.Join(a.Names(), ", "), told.Message())
		return &RefusedError{Code: told.Code(), Reason: codeName(told.Code()), Message: message}
	}
	if (a.failures == 0 || a.failures == 10) && !a.isStopping() {
		fmt.Fprintf(os.Stderr, "not attached to %s, trying again: %s\n", a.daemon, told.Message())
	}
	return nil
}

// heard notes a sign of life of the daemon.
func (a *Attachment) heard(message *pb.AttachResponse) {
	a.lastHeard = time.Now()
	if message.GetWelcome() == nil {
		return
	}
	a.failures = 0
	fmt.Fprintf(os.Stderr, "attached %s to %s\n", strings.Join(a.Names(), ", "), a.daemon)
	select {
	case <-a.welcomed:
	default:
		close(a.welcomed)
	}
}
