package cbench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
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
)

// link is the part of an attachment that concerns one daemon, renewed whenever it breaks.
type link struct {
	attachment *Attachment
	daemon     string
	failures   int
	lastHeard  time.Time
}

// keep stays attached, and returns a refusal that no patience will change.
func (l *link) keep(ctx context.Context) error {
	a := l.attachment
	connection, err := dial(l.daemon, a.settings)
	if err != nil {
		return err
	}
	defer connection.Close()
	gateway := pb.NewGatewayClient(connection)
	for !a.isStopping() {
		err := runSession(ctx, l, gateway)
		if refusal := l.judge(err); refusal != nil {
			return refusal
		}
		// Full jitter, so that many processes do not come back in step.
		longest := min(backoffMax, backoffMin<<l.failures)
		l.failures = min(l.failures+1, 10)
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
func (l *link) judge(err error) error {
	if err == nil {
		return nil
	}
	told := status.Convert(err)
	isFinal := false
	switch told.Code() {
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.Unimplemented, codes.FailedPrecondition:
		isFinal = true
	case codes.AlreadyExists:
		isFinal = l.lastHeard.IsZero() || time.Since(l.lastHeard) > staleName
	}
	if isFinal {
		message := fmt.Sprintf("%s refused the attachment of %s: %s", l.daemon, strings.Join(l.attachment.Names(), ", "), told.Message())
		return &RefusedError{Code: told.Code(), Reason: codeName(told.Code()), Message: message}
	}
	if (l.failures == 0 || l.failures == 10) && !l.attachment.isStopping() {
		fmt.Fprintf(os.Stderr, "not attached to %s, trying again: %s\n", l.daemon, told.Message())
	}
	return nil
}

// heard notes a sign of life of the daemon.
func (l *link) heard(message *pb.AttachResponse) {
	l.lastHeard = time.Now()
	if message.GetWelcome() == nil {
		return
	}
	l.failures = 0
	fmt.Fprintf(os.Stderr, "attached %s to %s\n", strings.Join(l.attachment.Names(), ", "), l.daemon)
	l.attachment.welcomeOnce.Do(func() { close(l.attachment.welcomed) })
}
