// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/wire"
)

// resultLocked says how the process ended, and why where we or the kernel did it.
func (p *process) resultLocked(status unix.WaitStatus, now time.Time) *wire.Result {
	res := &wire.Result{DurationNS: int64(now.Sub(p.began)), Ended: now, ExitCode: status.ExitStatus()}
	var signal unix.Signal
	if status.Signaled() {
		signal = status.Signal()
		res.ExitCode = 128 + int(signal)
		res.Signal = signalName(signal)
	}
	p.countLocked(res)
	switch {
	case status == unknownStatus: // and never 0, which would say that all went well
		res.Cause, res.CauseDetail = wire.CauseHost, "the kernel did not tell how it ended"
	case p.killCause != "":
		res.Cause, res.CauseDetail = p.killCause, p.killDetail
	case res.ExitCode != 0:
		res.Cause, res.CauseDetail = p.causeLocked(res.ExitCode, signal)
	}
	if trouble := p.log.trouble(); trouble != "" {
		if res.CauseDetail != "" {
			res.CauseDetail += "; "
		}
		res.CauseDetail += trouble
	}
	return res
}

func (p *process) countLocked(res *wire.Result) {
	if st := p.streams[0]; st != nil {
		res.StdoutBytes, res.StdoutTruncated, res.StdoutCut, res.StdoutLost = st.total, st.cut != "", st.cut, st.total-st.kept
		res.Stdout = st.excerpt.Excerpt()
	}
	if st := p.streams[1]; st != nil {
		res.StderrBytes, res.StderrTruncated, res.StderrCut, res.StderrLost = st.total, st.cut != "", st.cut, st.total-st.kept
		res.Stderr = st.excerpt.Excerpt()
	}
}

// causeLocked looks for the evidence of a limit behind a failure. Without evidence
// there is no cause.
func (p *process) causeLocked(code int, signal unix.Signal) (cause, detail string) {
	const killed = 128 + int(unix.SIGKILL)
	if code == killed {
		if n, ok := grown(p.oomKills, p.srv.o.OOMKills); ok && n > 0 {
			return wire.CauseOOM, fmt.Sprintf("processes of the sandbox that the kernel killed for its memory limit while it ran: %d", n)
		}
	}
	if signal == unix.SIGKILL {
		return wire.CauseKilled, "SIGKILL of unknown origin: not from us, and no limit of memory was hit"
	}
	if n, ok := grown(p.refusals, p.srv.o.PidsRefusals); ok && n > 0 {
		return wire.CausePids, fmt.Sprintf("forks that the sandbox's limit of processes refused while it ran: %d", n)
	}
	switch err := askRoom(filepath.Join(p.srv.o.Dir, p.srv.account.Load().workdir)); {
	case errors.Is(err, unix.ENOSPC):
		return wire.CauseDisk, "less than 1 MiB of disk was left when it ended, for all sandboxes together"
	case errors.Is(err, unix.EDQUOT): // of the sandbox's own, or of all: the server knows
		return wire.CauseDisk, "less than 1 MiB of disk was left when it ended"
	case errors.Is(err, unix.EROFS):
		return wire.CauseHost, "the disk of all sandboxes had become read-only when it ended: it failed"
	}
	return "", ""
}

// askRoom asks for a little room in dir and gives it back. A quota shows in no statfs, only to
// who asks for room.
func askRoom(dir string) error {
	const little = 1 << 20
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Fallocate(fd, 0, 0, little)
	}
	return err
}

// counter reads a counter; below zero: unknown.
func counter(read func() (int64, error)) int64 {
	if read == nil {
		return -1
	}
	n, err := read()
	if err != nil {
		return -1
	}
	return n
}

func grown(before int64, read func() (int64, error)) (int64, bool) {
	if before < 0 {
		return 0, false
	}
	after := counter(read)
	return after - before, after >= 0
}

// signalName spells a signal as "SIGKILL", and a nameless one as "SIG40".
func signalName(s unix.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}
