// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/docker/engineapi"
)

var _ runtime.Pauser = (*Instance)(nil)

// agentPatience bounds the wait for an agent that is to stop its clocks, or to let them go on.
const agentPatience = 500 * time.Millisecond

// Pause freezes it by its Engine, the agent told before.
func (i *Instance) Pause(ctx context.Context) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := i.resolve(ctx); err != nil {
		return err
	}
	if _, err := i.life(); err != nil {
		return err
	}
	if i.Paused() {
		return nil
	}
	if err := i.d.hasGroups(ctx); err != nil {
		return err
	}
	i.mark(pausingFile)
	limit, cancel := context.WithTimeout(ctx, agentPatience)
	if err := agent.NewClient(i.Dial).Suspend(limit, agentTurn()); err != nil {
		i.d.log.Debug("the clocks of a sandbox that is paused run on", "sandbox", i.id, "error", err)
	}
	cancel()
	work, done := i.d.finishing(ctx, undoTimeout)
	defer done()
	begin, err := i.holdStreams(work)
	if err != nil {
		i.continueAgent(work)
		return err
	}
	i.expectPauses(1) // before its event comes, which may be after Resume
	i.mu.Lock()
	i.paused = true
	i.mu.Unlock()
	err = i.freezing(work, func() error { return i.d.engine.PauseContainer(work, i.its()) })
	begin()
	if err == nil {
		i.mark(pausedFile)
		err = ctx.Err()
		if err == nil {
			_ = i.unmark(pausingFile) // at worst the next server tells the agent to go on
			return nil
		}
	} else {
		i.expectPauses(-1)
	}
	i.mu.Lock()
	i.paused = false
	i.mu.Unlock()
	if undo := i.resume(work); undo != nil {
		i.d.log.Error("a sandbox that could not be paused may stand still", "sandbox", i.id, "error", undo)
	}
	if _, over := i.life(); over != nil {
		return over
	}
	return err
}

const (
	// freezePatience is how long a container that cannot be frozen is tried again.
	freezePatience = 30 * time.Second
	// saidPausedPatience is the same of one that the Engine takes for paused: it may have to hear of the last resume yet.
	saidPausedPatience = 2 * time.Second
)

// freezing has do freeze the container, again where the kernel did not come to it: that needs an instant in which no process
// waits for a disk.
func (i *Instance) freezing(ctx context.Context, do func() error) error {
	began := time.Now()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := do()
		switch {
		case engineapi.AlreadyPaused(err) && time.Since(began) < saidPausedPatience:
		case !engineapi.CannotFreeze(err):
			return err
		case time.Since(began) > freezePatience:
			return fault.Wrap(fault.Unavailable, err, "the processes of sandbox %s cannot be frozen: some have waited for a disk all the time", i.id).
				WithRemedy("try again when they write less, or stop the sandbox first")
		}
		i.d.log.Debug("the processes of a sandbox were not frozen; that is tried again", "sandbox", i.id, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Resume lets it go on.
func (i *Instance) Resume(ctx context.Context) error {
	end, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := i.resolve(ctx); err != nil {
		return err
	}
	if _, err := i.life(); err != nil {
		return err
	}
	return i.resume(ctx)
}

// resume is Resume, with verb held. It also thaws what somebody else froze.
func (i *Instance) resume(ctx context.Context) error {
	work, done := i.d.finishing(ctx, undoTimeout)
	defer done()
	i.mark(pausingFile)
	if err := i.unmark(pausedFile); err != nil {
		return fault.Wrap(fault.Internal, err, "sandbox %s cannot be resumed", i.id)
	}
	c, err := i.d.engine.InspectContainer(work, i.its())
	if err == nil && c.State.Paused {
		err = i.d.engine.ResumeContainer(work, i.its())
	}
	if err != nil {
		i.unsure = true
		return err
	}
	i.mu.Lock()
	i.paused, i.frozen = false, false
	i.thawLocked()
	i.mu.Unlock()
	i.continueAgent(ctx)
	return nil
}

// thawLocked wakes who waits until the container is not frozen.
func (i *Instance) thawLocked() {
	if i.thawed != nil {
		close(i.thawed)
		i.thawed = nil
	}
}

// whenThawed returns what is closed once the container is not frozen any more, or down; nil: it is not frozen.
func (i *Instance) whenThawed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.up || !i.paused && !i.frozen {
		return nil
	}
	if i.thawed == nil {
		i.thawed = make(chan struct{})
	}
	return i.thawed
}

// Paused reports whether Pause froze it.
func (i *Instance) Paused() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.up && i.paused
}

// continueAgent has the clocks go on. An agent that does not answer in time goes on by itself after
// a while, see [agent.Client.Suspend].
func (i *Instance) continueAgent(ctx context.Context) {
	limit, cancel := context.WithTimeout(ctx, agentPatience)
	defer cancel()
	if err := agent.NewClient(i.Dial).Continue(limit, agentTurn()); err != nil {
		i.d.log.Debug("a sandbox's agent was not told to go on", "sandbox", i.id, "error", err)
		return
	}
	_ = i.unmark(pausingFile)
}

// agentTurn grows from call to call, over all servers of this boot of the host.
func agentTurn() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // every Linux has it
	return now.Nano()
}
