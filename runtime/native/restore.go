// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"

	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/runtime/native/layer"
	"sandpit.dev/sandbox"
)

var _ runtime.Restorer = (*Instance)(nil)

// Restore exchanges the disk of an instance that is up. See [runtime.Restorer]. The new
// disk is made while the processes end, and written to the host's disk while the new
// ones start.
func (i *Instance) Restore(ctx context.Context, spec runtime.Spec, from sandbox.ID) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	l, err := i.running()
	if err != nil {
		return err
	}
	if from != "" { // before anything is done
		snapshot, err := i.d.layers.OpenSnapshot(string(from))
		if err != nil {
			return err
		}
		_ = snapshot.Close()
	}
	i.mu.Lock()
	l.stopping = true
	i.mu.Unlock()
	if err := kill(l.pidfd); err != nil {
		return fault.Wrap(fault.Internal, err, "sandbox %s cannot be killed", i.id)
	}
	i.d.checkpoint("restore.killed")

	limit, cancel := context.WithCancel(ctx)
	x := i.exchange(limit, l, spec, from)
	defer x.wait()
	defer cancel() // of what nobody asked for the disk of
	select {
	case <-l.down:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := i.d.sweepDown(i); err != nil { // what the end could not free
		return err
	}
	if err := i.up(ctx, spec, nil, x.open); err != nil {
		return err
	}
	if err := x.wait(); err != nil {
		_ = i.stop(context.WithoutCancel(ctx), 0) // it runs on what a crash may take away
		return err
	}
	return nil
}

// exchange is the exchange of a disk that goes on while its instance ends and starts.
type exchange struct {
	i *Instance

	done    chan struct{} // closed when the disk is exchanged, or is not
	err     error         // why it is not
	settled chan struct{} // closed when that is on the host's disk
	failed  error         // why that is not
}

// exchange begins one, which is done once the life l is over.
func (i *Instance) exchange(ctx context.Context, l *live, spec runtime.Spec, from sandbox.ID) *exchange {
	x := &exchange{i: i, done: make(chan struct{}), settled: make(chan struct{})}
	go func() { // wait waits for it
		defer close(x.settled)
		settle, err := i.d.layers.ExchangeWhen(ctx, string(i.id), string(from), int64(spec.Limits.DiskMB)<<20, func() error {
			select {
			case <-l.down:
				return ctx.Err()
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		x.err = err
		close(x.done)
		if err == nil {
			i.d.checkpoint("restore.exchanged")
			x.failed = settle()
		}
	}()
	return x
}

// open gives the new disk, once it is there.
func (x *exchange) open() (*layer.Layer, error) {
	<-x.done
	if x.err != nil {
		return nil, x.err
	}
	return x.i.d.layers.Open(string(x.i.id))
}

// wait waits until nothing of it goes on, and says what failed.
func (x *exchange) wait() error {
	<-x.settled
	if x.err != nil {
		return x.err
	}
	return x.failed
}
