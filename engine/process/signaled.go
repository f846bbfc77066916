// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"cmp"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/sandbox"
)

// Ends reports whether a signal ends a program that does not catch it.
func Ends(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH, syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return false
	}
	return true
}

// SignalName returns the name of a signal; of one that has none its number.
func SignalName(sig syscall.Signal) string {
	return cmp.Or(unix.SignalName(sig), "SIG"+strconv.Itoa(int(sig)))
}

// Signals are the signals that the processes of a sandbox were sent, of one life of it. It is what a server
// remembers of them for the answers to who waits; the rows of the processes have the same. Its zero value is
// empty. It is safe for concurrent use.
type Signals struct {
	mu  sync.Mutex
	of  map[string]sandbox.Signaled
	all sandbox.Signaled
}

// Sent notes that a process is sent a signal; the zero value, that it was not.
func (t *Signals) Sent(processID string, s sandbox.Signaled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s == (sandbox.Signaled{}) {
		delete(t.of, processID)
		return
	}
	if t.of == nil {
		t.of = make(map[string]sandbox.Signaled)
	}
	t.of[processID] = s
}

// Down notes that the sandbox is taken down with all its processes.
func (t *Signals) Down(s sandbox.Signaled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = s
}

// Tell completes the result of a process that has ended.
func (t *Signals) Tell(processID string, res *sandbox.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.of[processID]
	if wentDown(res.Cause) && t.all != (sandbox.Signaled{}) {
		s = t.all
	}
	res.Signaled = signaled(res.Signal, res.Cause, s)
}

// Over lets go of what is remembered of a process.
func (t *Signals) Over(processID string) { t.Sent(processID, sandbox.Signaled{}) }

// Complete completes a result by what the process's row says.
func Complete(res *sandbox.Result, row sandbox.Signaled) {
	if row == (sandbox.Signaled{}) {
		row = res.Signaled
	}
	res.Signaled = signaled(res.Signal, res.Cause, row)
}

// signaled returns by whom a process was sent the signal that it ended by, or the last one, where sent was noted.
func signaled(signal string, cause sandbox.Cause, sent sandbox.Signaled) sandbox.Signaled {
	switch {
	case cause == sandbox.CauseTimeout, cause == sandbox.CauseOOM:
		return sandbox.Signaled{By: sandbox.System, With: cmp.Or(signal, "SIGKILL")}
	case wentDown(cause) && sent.By != "":
		return sandbox.Signaled{By: sent.By, With: cmp.Or(signal, sent.With)}
	}
	return sent
}

// wentDown reports whether a cause is that its sandbox was taken down.
func wentDown(cause sandbox.Cause) bool {
	switch cause {
	case sandbox.CauseStopped, sandbox.CauseIdle, sandbox.CauseTTL, sandbox.CauseUser, sandbox.CauseRetain, sandbox.CauseRestore,
		sandbox.CausePromote, sandbox.CauseRestart:
		return true
	}
	return false
}
