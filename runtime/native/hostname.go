// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"os"
	goruntime "runtime"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

var _ runtime.Namer = (*Instance)(nil)

// Programs is where sudo is. See [runtime.Helper].
func (i *Instance) Programs() string { return sudo.BinDir }

// SetHostname changes the host name of what runs. See [runtime.Namer].
func (i *Instance) SetHostname(ctx context.Context, name string) error {
	i.verb.Lock()
	defer i.verb.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	up, err := i.running()
	if err != nil {
		return err
	}
	if err := setHostname(up.pidfd, name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "the host name of sandbox %s cannot be set", i.id)
	}
	return nil
}

// setHostname has a thread join the namespace of the host name that a process is in, for the one
// call: some microseconds, where a child that does so takes a hundred.
func setHostname(pidfd *os.File, name string) error {
	failed := make(chan error, 1)
	go func() {
		goruntime.LockOSThread() // it ends with the goroutine, unless it is back in the server's own namespace
		own, err := os.Open("/proc/thread-self/ns/uts")
		if err != nil {
			failed <- err
			return
		}
		defer func() { _ = own.Close() }()
		if err := unix.Setns(int(pidfd.Fd()), unix.CLONE_NEWUTS); err != nil {
			goruntime.UnlockOSThread()
			failed <- os.NewSyscallError("setns", err)
			return
		}
		err = os.NewSyscallError("sethostname", unix.Sethostname([]byte(name)))
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWUTS) == nil {
			goruntime.UnlockOSThread()
		}
		failed <- err
	}()
	return <-failed
}
