package cbench

import (
	"context"
	"runtime"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/cbench/cbench-server/clients/go/cbenchpb"
)

const (
	// batchBytes bounds a message with several outcomes.
	batchBytes = 1_000_000
	// backlogBytes may wait to be written before no more is read from the same peer.
	backlogBytes = 16 * batchBytes
	// roomWait is how long a stream with more calls than fit is not read on. It
	// ends, because a cancellation may be stuck behind those calls.
	roomWait = time.Second
)

// lane holds the calls that came over one stream, and their outcomes on the way
// back over it. A message takes the outcomes that are ready and never waits for more.
type lane[O proto.Message] struct {
	host *host
	// failed makes the outcome of a call without a result.
	failed func(callID string, failure *pb.Failure) O
	write  func(outcomes []O) error

	mu         sync.Mutex
	held       map[*job]bool
	byID       map[string]*job
	ready      []sized[O]
	readyBytes int
	isClosed   bool
	// news and written hold a token when there is something to look at.
	news    chan struct{}
	written chan struct{}
}

type sized[O proto.Message] struct {
	outcome O
	size    int
}

func newLane[O proto.Message](
	host *host, failed func(string, *pb.Failure) O, write func([]O) error,
) *lane[O] {
	return &lane[O]{
		host: host, failed: failed, write: write, held: map[*job]bool{}, byID: map[string]*job{},
		news: make(chan struct{}, 1), written: make(chan struct{}, 1),
	}
}

// start starts a call; made puts its reply into an outcome. A refusal is an outcome, too.
//
// With mayWait, a call for which there is no room waits for it once; false
// means that no room came, and that the next ones need not try.
func (l *lane[O]) start(
	ctx context.Context, callID string, request proto.Message, timeout *durationpb.Duration, mayWait bool,
	made func(proto.Message) O,
) bool {
	cancel := context.CancelFunc(func() {})
	if timeout != nil {
		ctx, cancel = context.WithTimeout(ctx, timeout.AsDuration())
	}
	settled := func(call *job, reply proto.Message, failure *Failure) {
		cancel()
		if failure != nil {
			l.settle(call, l.failed(callID, failure.message()))
		} else {
			l.settle(call, made(reply))
		}
	}
	hasRoom := true
	// Held before it can settle: settling waits for this lock.
	l.mu.Lock()
	started, refused := l.host.submit(ctx, callID, request, settled)
	if refused != nil && mayWait && refused.Reason == "RESOURCE_EXHAUSTED" {
		l.mu.Unlock()
		offer, _, _ := l.host.taskOf(callID, request)
		hasRoom = offer.waitForRoom(ctx, roomWait)
		l.mu.Lock()
		started, refused = l.host.submit(ctx, callID, request, settled)
	}
	if refused == nil {
		l.held[started] = true
		if callID != "" {
			l.byID[callID] = started
		}
	}
	l.mu.Unlock()
	if refused != nil {
		cancel()
		l.fail(callID, refused)
	}
	return hasRoom
}

func (l *lane[O]) settle(call *job, outcome O) {
	size := proto.Size(outcome)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held[call] {
		return
	}
	delete(l.held, call)
	if l.byID[call.id] == call {
		delete(l.byID, call.id)
	}
	l.put(outcome, size)
}

// fail queues an outcome for a call without a result.
func (l *lane[O]) fail(callID string, failure *Failure) {
	outcome := l.failed(callID, failure.message())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(outcome, proto.Size(outcome))
}

func (l *lane[O]) put(outcome O, size int) {
	l.ready = append(l.ready, sized[O]{outcome, size})
	l.readyBytes += size
	notify(l.news)
}

// cancel gives up a call; it gets no outcome. An unknown one is ignored.
func (l *lane[O]) cancel(callID string) {
	l.mu.Lock()
	given := l.byID[callID]
	delete(l.byID, callID)
	delete(l.held, given)
	l.mu.Unlock()
	if given != nil {
		given.abandon()
		notify(l.news)
	}
}

// abandon gives up every call, because the peer is gone.
func (l *lane[O]) abandon() {
	l.mu.Lock()
	held := l.held
	l.held, l.byID = map[*job]bool{}, map[string]*job{}
	l.mu.Unlock()
	for given := range held {
		given.abandon()
	}
}

// count returns how many calls have no outcome yet.
func (l *lane[O]) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

// close takes no more calls: send returns when those held are answered.
func (l *lane[O]) close() {
	l.mu.Lock()
	l.isClosed = true
	l.mu.Unlock()
	notify(l.news)
}

// backlogWritten waits while the peer does not read what it asked for.
func (l *lane[O]) backlogWritten(ctx context.Context) {
	for {
		l.mu.Lock()
		isShort := l.readyBytes <= backlogBytes
		l.mu.Unlock()
		if isShort {
			return
		}
		select {
		case <-l.written:
		case <-ctx.Done():
			return
		}
	}
}

// send writes outcomes as they become ready, until closed and done.
func (l *lane[O]) send(ctx context.Context) error {
	for {
		batch, isDone := l.nextBatch()
		if len(batch) > 0 {
			if err := l.write(batch); err != nil {
				return err
			}
			notify(l.written)
			continue
		}
		if isDone {
			return nil
		}
		select {
		case <-l.news:
			l.gather()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gather lets calls that are about to end do so first, for as long as more of
// them do: one message with many outcomes costs the peer far less than many.
func (l *lane[O]) gather() {
	for before := 0; ; {
		runtime.Gosched()
		l.mu.Lock()
		count, bytes := len(l.ready), l.readyBytes
		l.mu.Unlock()
		if count == before || bytes >= batchBytes {
			return
		}
		before = count
	}
}

func (l *lane[O]) nextBatch() (batch []O, isDone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	size := 0
	for _, next := range l.ready {
		if len(batch) > 0 && size+next.size > batchBytes {
			break
		}
		batch = append(batch, next.outcome)
		size += next.size
	}
	clear(l.ready[:len(batch)])
	l.ready = l.ready[len(batch):]
	l.readyBytes -= size
	return batch, l.isClosed && len(l.held) == 0 && len(batch) == 0
}

func notify(tokens chan struct{}) {
	select {
	case tokens <- struct{}{}:
	default:
	}
}
