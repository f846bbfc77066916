// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/background"
	"sandpit.dev/cmd/sandpit/internal/flags"
	"sandpit.dev/fault"
	"sandpit.dev/internal/running"
)

// NewDown returns the command that ends the server.
func NewDown(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "down [flags]",
		Short: "End this machine's server; all data stays",
		Long: `End this machine's server and wait until it is gone. All data stays, and sandboxes go on running:
the next server finds them again. To end them, stop or delete them first. It is no error if there is no server.`,
		Args: app.Takes(0, 0),
	}
	wait := flags.Period{Length: 30 * time.Second}
	c.Flags().Var(&wait, "wait", "how long to wait for it to end (default 30s)")
	c.RunE = func(*cobra.Command, []string) error {
		s, dir, err := a.Local()
		if errors.Is(err, fs.ErrNotExist) {
			_, err = fmt.Fprintln(a.Stdout, "no sandpit server runs on this machine")
			return err
		}
		if err != nil {
			return err
		}
		was, err := end(s, wait.Length)
		if err != nil {
			return err
		}
		// A server that ended by itself has taken its word back; one that was
		// killed could not.
		if err := running.Remove(dir, s.PID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.Wrap(fault.Unavailable, err, "the note of the server that was cannot be removed")
		}
		if !was {
			_, err = fmt.Fprintf(a.Stdout, "the server at %s had ended already\n", s.URL)
			return err
		}
		_, err = fmt.Fprintf(a.Stdout, "the server at %s has ended; its data stays in %s\n", s.URL, s.Data)
		return err
	}
	return c
}

// end ends a server and waits until it is gone; was tells whether it ran. A
// process that took the number of one that is gone is left alone.
func end(s running.Server, wait time.Duration) (was bool, err error) {
	pidfd, err := unix.PidfdOpen(s.PID, 0)
	if errors.Is(err, unix.ESRCH) || s.PID <= 0 {
		return false, nil
	}
	if err != nil {
		return false, fault.Wrap(fault.Unavailable, err, "process %d cannot be looked at", s.PID)
	}
	defer unix.Close(pidfd)
	switch owns, err := ownsData(s); {
	case errors.Is(err, fs.ErrPermission):
		return false, fault.Wrap(fault.Denied, err, "the server is another user's (process %d)", s.PID).
			WithRemedy("run this as the user that the server runs as")
	case err != nil || !owns:
		return false, nil
	}
	if err := unix.PidfdSendSignal(pidfd, unix.SIGTERM, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return false, fault.Wrap(fault.Unavailable, err, "process %d cannot be ended", s.PID)
	}
	deadline := time.Now().Add(wait)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(max(time.Until(deadline), 0)/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return true, fault.Wrap(fault.Unavailable, err, "process %d cannot be waited for", s.PID)
		case n == 0:
			return true, fault.New(fault.Timeout, "the server (process %d) has not ended within %s", s.PID, wait).
				WithRemedy("see %s, wait longer with --wait, or kill it: kill -9 %d (no data is lost)", filepath.Join(s.Data, background.LogName), s.PID)
		}
		return true, nil
	}
}

// ownsData reports whether a server's process is the one that holds the lock of its
// data directory.
func ownsData(s running.Server) (bool, error) {
	lock, err := os.Stat(filepath.Join(s.Data, "lock"))
	if err != nil {
		return false, err
	}
	dir := filepath.Join("/proc", strconv.Itoa(s.PID), "fd")
	open, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, f := range open {
		if info, err := os.Stat(filepath.Join(dir, f.Name())); err == nil && os.SameFile(info, lock) {
			return true, nil
		}
	}
	return false, nil
}
