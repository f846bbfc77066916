// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"net"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// instance is one driver's hold of a machine.
type instance struct{ m *machine }

var _ runtime.Instance = (*instance)(nil)

func (i *instance) Handle() runtime.Handle { return runtime.Handle{ID: i.m.id} }

func (i *instance) Start(ctx context.Context, spec runtime.Spec) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := i.m.start(spec); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		_ = i.m.stop(stoppedExit())
		return err
	}
	return nil
}

func (i *instance) Dial(ctx context.Context) (net.Conn, error) { return i.m.dial(ctx) }

func (i *instance) Wait(ctx context.Context) (runtime.Exit, error) {
	i.m.mu.Lock()
	down := i.m.down
	i.m.mu.Unlock()
	select {
	case <-down:
	case <-ctx.Done():
		select {
		case <-down:
		default:
			return runtime.Exit{}, ctx.Err()
		}
	}
	i.m.mu.Lock()
	defer i.m.mu.Unlock()
	return i.m.exit, nil
}

func (i *instance) Stop(ctx context.Context, grace time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if grace > 0 {
		// What is frozen cannot end by itself.
		if err := i.Resume(ctx); err != nil && !fault.Is(err, fault.State) {
			return err
		}
		err := agent.NewClient(i.m.dial).Shutdown(ctx, grace)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = err // what did not end in grace is killed now
	}
	return i.m.stop(stoppedExit())
}

func (i *instance) Remove(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.m.remove()
}

func stoppedExit() runtime.Exit { return runtime.Exit{Cause: sandbox.CauseStopped} }

func errDown(id sandbox.ID) error {
	return fault.New(fault.State, "the instance %s is down", id).WithRemedy("start it")
}
