// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/linux/cgroup"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime"
)

var _ runtime.Pauser = (*Instance)(nil)

const (
	// agentPatience bounds the wait for an agent that is to stop its clocks, or to let
	// them go on. It takes a tenth of a millisecond, but what runs inside can keep
	// it busy; it is frozen all the same then.
	agentPatience = 500 * time.Millisecond
	// freezePatience bounds the wait until all stands. A process in the middle of a
	// system call that cannot be interrupted ends it first.
	freezePatience = 5 * time.Second
	// reclaimAfter is how long an instance is paused before its memory is taken.
	// Who pauses for an instant would only have to read it all again.
	reclaimAfter = time.Second
	// reclaimPatience bounds the taking.
	reclaimPatience = 5 * time.Second
	// thawAgain is the first pause before a thaw that failed is tried again, and thawAgainMost
	// the longest: until then a sandbox stands still that nobody paused.
	thawAgain     = 100 * time.Millisecond
	thawAgainMost = 5 * time.Second
)

// Pause freezes every process. See [runtime.Pauser].
//
// That it was Pause who froze them says a file beside the state, which is made last and
// removed first: whoever finds them frozen without it thaws them.
func (i *Instance) Pause(ctx context.Context) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := i.running()
	switch {
	case err != nil:
		return err
	case i.Paused():
		return nil
	}
	if err := i.d.cgroups.Info().Err(cgroup.Freeze); err != nil {
		return err
	}
	i.suspendAgent(ctx)
	i.d.checkpoint("pause.suspended")
	err = i.freeze(ctx, l)
	if err == nil {
		i.d.checkpoint("pause.frozen")
		if err = i.markPaused(l); err != nil {
			if i.thaw(l) != nil { // the error before says more
				i.thawLater(l)
			}
		}
	}
	if err != nil {
		i.continueAgent(ctx, l)
		return err
	}
	i.d.checkpoint("pause.marked")
	i.reclaim(l)
	return nil
}

// Resume lets them go on. See [runtime.Pauser].
func (i *Instance) Resume(ctx context.Context) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	l, err := i.running()
	if err != nil {
		return err
	}
	return i.resume(ctx, l)
}

// resume is Resume, with verb held. On an instance that is not paused it still has the
// agent go on, which a Pause that was killed on its way may have suspended, and thaws what
// an earlier thaw that failed left standing.
func (i *Instance) resume(ctx context.Context, l *live) error {
	if !i.Paused() {
		if err := i.thawLeft(l); err != nil {
			return err
		}
		i.continueAgent(ctx, l)
		return nil
	}
	if l.stopReclaim != nil {
		l.stopReclaim()
	}
	if err := i.remove(host.PausedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Internal, err, "sandbox %s cannot be resumed", i.id)
	}
	i.d.checkpoint("resume.unmarked")
	i.mu.Lock()
	l.paused = false
	i.mu.Unlock()
	if err := i.thaw(l); err != nil {
		return err
	}
	i.d.checkpoint("resume.thawed")
	i.continueAgent(ctx, l)
	return nil
}

// Paused reports whether Pause froze it.
func (i *Instance) Paused() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.live != nil && i.live.paused
}

// running returns the instance's life, or says that there is none.
func (i *Instance) running() (*live, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.removed:
		return nil, fault.New(fault.NotFound, "sandbox %s was removed", i.id)
	case i.live == nil || i.live.over:
		return nil, fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	return i.live, nil
}

// freeze stops every process, the agent too. After an error none is frozen, or not for long.
func (i *Instance) freeze(ctx context.Context, l *live) error {
	limit, cancel := context.WithTimeout(ctx, freezePatience)
	defer cancel()
	err := l.group.Freeze(limit)
	switch {
	case err == nil:
		return nil
	case fault.Is(err, fault.NotFound) && ctx.Err() == nil:
		return fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	}
	i.thawLater(l) // the group's own taking back may have failed: it looks
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case fault.Is(err, fault.Timeout):
		return fault.Wrap(fault.Unavailable, err, "the processes of sandbox %s did not stand still within %v", i.id, freezePatience).
			WithRemedy("one of them waits for the disk; try again, or stop the sandbox")
	}
	return err
}

// thaw undoes freeze, whatever the caller's time: nothing inside can hold it up.
func (i *Instance) thaw(l *live) error {
	err := l.group.Thaw(context.Background())
	if fault.Is(err, fault.NotFound) {
		return fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	}
	return err
}

// thawLeft thaws, with verb held, an instance that is not paused and stands all the same: a
// thaw failed. That nobody can see whether it stands is an error: "no" might be for good.
func (i *Instance) thawLeft(l *live) error {
	if i.d.cgroups.Info().Err(cgroup.Freeze) != nil {
		return nil // nobody froze it
	}
	frozen, err := l.group.Frozen()
	switch {
	case fault.Is(err, fault.NotFound):
		return fault.Wrap(fault.State, err, "sandbox %s is not running", i.id)
	case err != nil:
		return fault.Wrap(fault.Unavailable, err, "whether sandbox %s stands still cannot be seen now", i.id)
	case !frozen:
		return nil
	}
	return i.thaw(l)
}

// thawLater thaws the life l behind the caller's back, where what was called was not a
// Resume: nobody would call it again.
func (i *Instance) thawLater(l *live) {
	i.d.watchers.Go(func() {
		for pause := thawAgain; ; pause = min(2*pause, thawAgainMost) {
			select {
			case <-i.d.running.Done():
				return // the next server thaws what it finds without a mark
			case <-l.down:
				return
			case <-time.After(pause):
			}
			if i.tryThaw(l) {
				return
			}
		}
	})
}

// tryThaw reports whether there is nothing more to do. It does not wait for a verb, which
// may take long: the driver's end waits for it.
func (i *Instance) tryThaw(l *live) bool {
	if !i.verb.TryLock() {
		return false
	}
	defer i.verb.Unlock()
	if now, err := i.running(); err != nil || now != l || i.Paused() {
		return true
	}
	err := i.thawLeft(l)
	if err == nil || fault.Is(err, fault.State) {
		return true
	}
	i.d.log.Warn("a sandbox that is not paused stands still; it is tried again", "sandbox", i.id, "error", err)
	return false
}

// markPaused puts down that Pause froze the life l, unless it is over.
func (i *Instance) markPaused(l *live) error {
	err := l.state.MarkPaused(i.d.instances.Root, string(i.id))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "that sandbox %s is paused cannot be written", i.id)
	}
	i.mu.Lock()
	l.paused = !l.over
	over := l.over
	i.mu.Unlock()
	if over { // its watcher removed its files, and may have done so before
		_ = i.remove(host.PausedFile)
		return fault.New(fault.State, "sandbox %s is not running", i.id)
	}
	return nil
}

// suspendAgent has the agent stop its clocks and start nothing. One that does not
// answer is frozen with its clocks running.
func (i *Instance) suspendAgent(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	if err := agent.NewClient(i.Dial).Suspend(limit, agentTurn()); err != nil {
		i.d.log.Debug("the clocks of a sandbox that is paused run on", "sandbox", i.id, "error", err)
	}
}

// continueAgent undoes suspendAgent. While the agent does not answer, it is told again
// behind the caller's back.
func (i *Instance) continueAgent(ctx context.Context, l *live) {
	turn := agentTurn()
	if i.tryContinue(ctx, turn) {
		return
	}
	i.d.watchers.Go(func() {
		for pause := agentPatience; !i.tryContinue(i.d.running, turn); pause = min(2*pause, time.Minute) {
			select {
			case <-i.d.running.Done():
				return
			case <-l.down:
				return
			case <-time.After(pause):
			}
		}
	})
}

// tryContinue reports whether there is nothing more to do.
func (i *Instance) tryContinue(ctx context.Context, turn int64) bool {
	limit, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	err := agent.NewClient(i.Dial).Continue(limit, turn)
	if err == nil || fault.Is(err, fault.State) || fault.Is(err, fault.Unsupported) {
		return true // a later call took its place, it is down, or it was never suspended
	}
	i.d.log.Debug("a sandbox's agent was not told to go on", "sandbox", i.id, "error", err)
	return false
}

// agentTurn grows from call to call, over all servers of this boot of the host.
func agentTurn() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every Linux has it
	return now.Nano()
}

// reclaim gives memory of a paused life back to the host, after a while and one
// instance at a time: nobody waits for it.
func (i *Instance) reclaim(l *live) {
	ctx, cancel := context.WithCancel(i.d.running)
	l.stopReclaim = cancel
	i.d.watchers.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
			return
		case <-l.down:
			return
		case <-time.After(reclaimAfter):
		}
		select {
		case <-ctx.Done():
			return
		case i.d.reclaims <- struct{}{}:
		}
		defer func() { <-i.d.reclaims }()
		limit, done := context.WithTimeout(ctx, reclaimPatience)
		defer done()
		if err := l.group.Reclaim(limit); err != nil && !fault.Is(err, fault.NotFound) {
			i.d.log.Debug("memory of a paused sandbox is not given back", "sandbox", i.id, "error", err)
		}
	})
}

// findPaused reports whether Pause froze the life that was found, and undoes halves: a
// freeze without the file, of a verb that was killed, and the file of another life.
// Where it thawed one, the agent may still be suspended.
func (i *Instance) findPaused(l *live) (paused, thawed bool, err error) {
	if i.d.cgroups.Info().Err(cgroup.Freeze) != nil {
		return false, false, nil
	}
	frozen, err := l.group.Frozen()
	if err != nil {
		return false, false, fault.Wrap(fault.Unavailable, err, "whether sandbox %s is paused cannot be seen now", i.id)
	}
	marked, err := l.state.Paused(i.d.instances.Root, string(i.id))
	switch {
	case err != nil:
		return false, false, fault.Wrap(fault.Unavailable, err, "whether sandbox %s is paused cannot be read", i.id)
	case frozen && marked:
		return true, false, nil
	}
	if err := i.remove(host.PausedFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, false, fault.Wrap(fault.Internal, err, "that sandbox %s is not paused cannot be written", i.id)
	}
	if !frozen {
		return false, false, nil
	}
	return false, true, i.thaw(l)
}
