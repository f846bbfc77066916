// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
)

// An agent that says nothing is no reason to end its sandbox: its host may be busy, or
// somebody stopped its process 1. Calls to it end with [agent.ErrSilent], the record says
// since when, and it is asked again until it answers or is down.
const (
	askAgain     = time.Second      // the first pause before a silent agent is asked again
	askAgainMost = 10 * time.Second // the longest
	// stillSilent is how long a call waits for an agent that was silent a moment ago.
	stillSilent = time.Second
	// heardAtOnce bounds how many agents are waited for at a time, apart from those that
	// are called.
	heardAtOnce = 64
)

// observe has the engine told when the agent of a life falls silent, and when it answers.
func (e *Engine) observe(b *entry, l *session) {
	l.client.Observe(l.pauses.Paused, func(silent bool) {
		if !silent {
			e.core.Metrics.Unresponsive.Dec()
			e.core.Log.Info("the agent of a sandbox answers again, or the sandbox is down", "sandbox", b.id)
			return
		}
		e.core.Metrics.Unresponsive.Inc()
		e.core.Log.Warn("the agent of a sandbox does not answer; it is asked again until it does", "sandbox", b.id)
		e.retain(b)
		e.group.Spawn(func(ctx context.Context) {
			defer e.release(b)
			e.awaitAnswer(ctx, b, l)
		})
	})
}

// awaitAnswer asks a silent agent again until it answers or is down.
func (e *Engine) awaitAnswer(ctx context.Context, b *entry, l *session) {
	for pause := askAgain; !l.client.SilentSince().IsZero(); pause = min(2*pause, askAgainMost) {
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-l.down:
		case <-t.C:
		}
		t.Stop()
		select {
		case <-ctx.Done():
			return
		case <-l.down:
			l.client.Answered()
			return
		default:
		}
		if !l.pauses.Paused() {
			_, _ = l.client.Ping(ctx)
		}
	}
	if l.unheard.Load() {
		e.adoptBehind(ctx, b)
		return
	}
	l.gate.BindOwed(ctx)
}

// adoptBehind reconciles a sandbox, whose agent nobody has heard of since the server began,
// in its turn. Those of silent agents come back to it by awaitAnswer.
func (e *Engine) adoptBehind(ctx context.Context, b *entry) {
	own, err := b.take(ctx)
	if err != nil {
		return
	}
	defer own.release()
	wctx, cancel := context.WithTimeout(ctx, reconcileBound)
	defer cancel()
	err = e.reconcile(wctx, own, finishedLater)
	switch {
	case err == nil:
		e.plan(b)
	case ctx.Err() == nil && !errors.Is(err, agent.ErrSilent) && b.ending.Load() == 0:
		e.core.Log.Error("the commands of a sandbox of the last run cannot be looked after now; it is tried again", "sandbox", b.id, "error", err)
		e.later(b)
	}
}

// hear waits for the first word of an agent since the server began.
func (e *Engine) hear(ctx context.Context, b held, l *session) error {
	if time.Since(l.asked) < stillSilent { // the others who waited for the turn share the answer
		return agent.Silent()
	}
	limit, cancel := context.WithCancel(ctx)
	defer cancel()
	b.hearing.Store(&cancel)
	defer b.hearing.Store(nil)
	if b.ending.Load() > 0 {
		cancel()
	}
	if !l.client.SilentSince().IsZero() {
		limit, cancel = context.WithTimeout(limit, stillSilent)
		defer cancel()
	}
	_, err := l.client.Ping(limit)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case b.ending.Load() > 0:
		return fault.New(fault.State, "the sandbox is about to be stopped or deleted").WithRemedy("ask again in a moment")
	case limit.Err() != nil, errors.Is(err, agent.ErrSilent):
		l.asked = time.Now()
		return agent.Silent()
	case fault.Is(err, fault.State): // it is down, which its watcher is about to say
		select {
		case <-l.down:
			e.sessionEnded(ctx, b, l)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// takeAway takes the turn of an entry whose sandbox is to end: nobody else goes on to wait for
// the first word of its agent with it.
func (e *Engine) takeAway(ctx context.Context, b *entry) (held, error) {
	b.ending.Add(1)
	defer b.ending.Add(-1)
	if cancel := b.hearing.Load(); cancel != nil {
		(*cancel)()
	}
	return b.take(ctx)
}

// heard waits until the agent of a sandbox that runs was heard of, and the commands of an
// earlier server are adopted.
func (e *Engine) heard(ctx context.Context, b *entry) error {
	if l := b.up(); l == nil || !l.unheard.Load() {
		return nil
	}
	return e.turnWork(ctx, b, reconcileBound, e.take, func(context.Context, held) error { return nil })
}

// heardIfItAnswers is heard for who reads what is on record, silent agent or not.
func (e *Engine) heardIfItAnswers(ctx context.Context, b *entry) error {
	if err := e.heard(ctx, b); err != nil && !errors.Is(err, agent.ErrSilent) {
		return err
	}
	return nil
}

// askBusy asks the agents of all sandboxes in use for a sign of life: who waits for the end
// of a command hears nothing for as long as that runs. It begins no goroutine for the others.
func (e *Engine) askBusy(ctx context.Context) {
	type asked struct {
		b *entry
		l *session
	}
	var all []asked
	e.mu.Lock()
	for _, b := range e.entries {
		if l := b.up(); l != nil && b.uses() > 0 && l.client.SilentSince().IsZero() {
			b.refs++
			all = append(all, asked{b, l})
		}
	}
	e.mu.Unlock()
	if len(all) == 0 {
		return
	}
	e.group.Spawn(func(context.Context) {
		var g errgroup.Group
		g.SetLimit(heardAtOnce)
		for _, a := range all {
			g.Go(func() error {
				defer e.release(a.b)
				_, _ = a.l.client.Ping(ctx)
				return nil
			})
		}
		_ = g.Wait()
	})
}
