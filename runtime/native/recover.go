// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/linux/host"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

const (
	// spaceEvery is the time between two looks whether a failed store can be mounted anew.
	spaceEvery = time.Second
	// recoverMost is the longest time between two attempts.
	recoverMost = time.Minute
	// evictTimeout bounds the wait for instances whose processes were killed.
	evictTimeout = 30 * time.Second
	// evictTogether is how many instances are stopped at the same time.
	evictTogether = 16
)

// storeFailed is why an instance is down whose disk failed with all others: the host's fault,
// and nothing that its next start would meet again.
func storeFailed() runtime.Exit {
	return runtime.Exit{Cause: sandbox.CauseHost, Detail: "the disk of all sandboxes failed and was mounted anew; what was written last and not synced is lost"}
}

// recoverStore mounts a store anew whose file system failed, until ctx is done.
func (d *Driver) recoverStore(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.layers.Failed():
		}
		for wait := spaceEvery; ; wait = min(2*wait, recoverMost) {
			if !pause(ctx, wait) {
				return
			}
			if !d.layers.Mountable() {
				wait = spaceEvery / 2 // what is missing may come at any time
				continue
			}
			err := d.remount(ctx)
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				d.log.Error("the store that failed cannot be mounted anew yet; it is tried again", "error", err)
			}
		}
	}
}

// pause waits, and reports whether it was for all of d.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// remount ends all that uses the store, and mounts it anew.
func (d *Driver) remount(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, evictTimeout)
	defer cancel()
	d.mu.Lock()
	all := slices.Collect(maps.Values(d.known))
	d.mu.Unlock()
	d.log.Warn("sandboxes are stopped, since their disk failed", "sandboxes", len(all))
	errs := make([]error, len(all))
	slots := make(chan struct{}, evictTogether)
	var work sync.WaitGroup
	for n, i := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			errs[n] = i.evict(limit)
		})
	}
	work.Wait()
	d.closer.flush()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return d.layers.Remount(ctx)
}

// evict takes an instance down whose disk failed.
func (i *Instance) evict(ctx context.Context) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	i.mu.Lock()
	if i.live != nil {
		i.live.evicted = true
	}
	i.mu.Unlock()
	if err := i.stop(ctx, 0); err != nil {
		return fmt.Errorf("stop sandbox %s: %w", i.id, err)
	}
	return i.settled(ctx)
}

// evictFound ends what runs of an earlier server's, whose disk failed with all others: this
// one cannot open the store before. Nothing else is known of it yet.
func (d *Driver) evictFound(ctx context.Context) error {
	ids, err := d.live()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if d.evicted[id] || !sandbox.ValidID(string(id)) {
			continue
		}
		if err := d.evictProcess(ctx, id); err != nil {
			return fault.Wrap(fault.Unavailable, err, "sandbox %s, whose disk failed, cannot be ended", id)
		}
	}
	return nil
}

func (d *Driver) evictProcess(ctx context.Context, id sandbox.ID) error {
	s, err := host.ReadState(d.instances.Root, string(id))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pidfd, err := s.Open(d.boot)
	if pidfd == nil {
		return err
	}
	defer func() { _ = pidfd.Close() }()
	d.evicted[id] = true
	if err := host.Kill(pidfd); err != nil {
		return err
	}
	if group, err := d.cgroups.Open(string(id)); err == nil { // else nothing of it is frozen
		_ = group.Kill()
		limit, cancel := context.WithTimeout(ctx, endPatience)
		_ = group.Thaw(limit)
		cancel()
	}
	if !host.Ended(pidfd, evictTimeout) {
		return errors.New("its process 1 does not end")
	}
	return nil
}
