package main

import (
	"context"
	"sync"
	"time"
)

// defaultHold is how long a hold lasts by default.
const defaultHold = 60_000

// counters are what happened under one key.
type counters struct {
	started, running, most, ended, cancelled int64
	released                                 chan struct{}
	isReleased                               bool
}

// probe keeps counters for each key.
type probe struct {
	mu    sync.Mutex
	byKey map[string]*counters
}

func (p *probe) of(key string) *counters {
	if p.byKey[key] == nil {
		p.byKey[key] = &counters{released: make(chan struct{})}
	}
	return p.byKey[key]
}

func (p *probe) release(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.of(key)
	if !found.isReleased {
		found.isReleased = true
		close(found.released)
	}
}

// read returns the counters of a key, zero for one never seen.
func (p *probe) read(key string) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.of(key)
	return map[string]any{
		"started": found.started, "running": found.running, "most": found.most,
		"ended": found.ended, "cancelled": found.cancelled,
	}
}

// hold waits until the key is released, the time has passed, or the caller has given up.
func (p *probe) hold(ctx context.Context, key string, milliseconds int64) (string, error) {
	p.mu.Lock()
	held := p.of(key)
	held.started++
	held.running++
	held.most = max(held.most, held.running)
	p.mu.Unlock()
	timer := time.NewTimer(time.Duration(milliseconds) * time.Millisecond)
	defer timer.Stop()
	outcome, err := "", error(nil)
	select {
	case <-held.released:
		outcome = "released"
	case <-timer.C:
		outcome = "elapsed"
	case <-ctx.Done():
		err = ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	held.running--
	held.ended++
	if err != nil {
		held.cancelled++
	}
	return outcome, err
}
