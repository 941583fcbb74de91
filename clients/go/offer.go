package cbench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
)

const (
	// defaultConcurrency is how many calls run at once by default.
	defaultConcurrency = 256
	// queueFactor is how many calls may wait, as a multiple of those that may run.
	queueFactor = 4
)

// answer produces the reply to one request with user code.
type answer func(ctx context.Context) (proto.Message, error)

// offer is one served component: it runs up to its limit of calls at once, and
// lets a bounded number more wait.
type offer struct {
	name   string
	origin Origin
	limit  int
	// slots holds a token for each call in user code.
	slots chan struct{}

	mu       sync.Mutex
	admitted int
	inFlight map[string]bool
	// room is closed when a call leaves; nil unless somebody waits for that.
	room chan struct{}
}

func newOffer(name string, origin Origin, limit int) *offer {
	if limit == 0 {
		limit = defaultConcurrency
	}
	return &offer{
		name: name, origin: origin, limit: limit,
		slots: make(chan struct{}, limit), inFlight: map[string]bool{},
	}
}

// settled is told the one outcome of a call: its reply, or why there is none.
type settled func(call *job, reply proto.Message, failure *Failure)

// job is one call from its admission to its one outcome. The outcome and the
// end of user code are two things: a call that is cancelled or overdue has its
// outcome at once, while its function may run on.
type job struct {
	offer   *offer
	id      string
	once    sync.Once
	cancel  context.CancelFunc
	settled settled
}

// submit starts or queues a call, and calls settled once. A failure returned
// means that it was refused, and settled is not called.
func (o *offer) submit(
	ctx context.Context, id string, run answer, settled settled,
) (*job, *Failure) {
	if failure := o.admit(id); failure != nil {
		return nil, failure
	}
	ctx, cancel := context.WithCancel(ctx)
	j := &job{offer: o, id: id, cancel: cancel, settled: settled}
	stop := context.AfterFunc(ctx, func() { j.settle(nil, ended(ctx, o.origin)) })
	go func() {
		defer cancel()
		defer o.leave()
		select {
		case o.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if ctx.Err() != nil {
			<-o.slots
			return
		}
		o.answer(ctx, run, func(reply proto.Message, failure *Failure) {
			stop()
			j.settle(reply, failure)
		})
	}()
	return j, nil
}

// answer runs user code, and survives everything it does except ending the process.
func (o *offer) answer(ctx context.Context, run answer, done func(proto.Message, *Failure)) {
	var reply proto.Message
	// Stays if user code calls runtime.Goexit, which is not a panic.
	failure := &Failure{Origin: o.origin, Reason: "EXCEPTION", Message: "user code ended its goroutine"}
	defer func() {
		if value := recover(); value != nil {
			failure = panicked(value, o.origin)
		}
		<-o.slots
		done(reply, failure)
	}()
	var err error
	reply, err = run(ctx)
	if err != nil {
		failure = failureOf(ctx, err, o.origin)
	} else {
		failure = o.tooLarge(reply)
	}
}

// abandon gives the outcome now, and tells user code to stop.
func (j *job) abandon() {
	j.settle(nil, &Failure{Origin: j.offer.origin, Reason: "CANCELLED", Message: "the caller gave up"})
	j.cancel()
}

func (j *job) settle(reply proto.Message, failure *Failure) {
	j.once.Do(func() {
		j.offer.forget(j.id)
		j.settled(j, reply, failure)
	})
}

func (o *offer) admit(id string) *Failure {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id != "" && o.inFlight[id] {
		message := fmt.Sprintf("call %q is still in flight", id)
		return &Failure{Origin: o.origin, Reason: "ALREADY_EXISTS", Message: message}
	}
	if o.isFull() {
		message := fmt.Sprintf("%q runs %d calls at once and has %d more waiting. Send fewer, or try again later.",
			o.name, o.limit, o.limit*queueFactor)
		return &Failure{Origin: o.origin, Reason: "RESOURCE_EXHAUSTED", Message: message, Retryable: true}
	}
	o.admitted++
	if id != "" {
		o.inFlight[id] = true
	}
	return nil
}

func (o *offer) isFull() bool { return o.admitted >= o.limit*(1+queueFactor) }

func (o *offer) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.inFlight, id)
}

func (o *offer) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admitted--
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
}

// tooLarge says that no message can hold a result, if that is so.
func (o *offer) tooLarge(reply proto.Message) *Failure {
	const frame = 64
	size := proto.Size(reply)
	if size <= maxMessageBytes-frame {
		return nil
	}
	message := fmt.Sprintf("the result has %d bytes, and a message holds %d", size, maxMessageBytes)
	return &Failure{Origin: o.origin, Reason: "RESULT_TOO_LARGE", Message: message}
}

// waitForRoom waits, but not for long, until one more call would be admitted.
func (o *offer) waitForRoom(ctx context.Context, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		o.mu.Lock()
		isFull := o.isFull()
		if isFull && o.room == nil {
			o.room = make(chan struct{})
		}
		room := o.room
		o.mu.Unlock()
		if !isFull {
			return true
		}
		select {
		case <-room:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
