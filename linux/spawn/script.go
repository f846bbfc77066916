// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Script is a list of system calls that a bare child of the server makes in a
// sandbox's namespaces, in order, each with constants, parameters of the run, or
// results of earlier calls as its arguments. It is written once and run for each
// sandbox; writing is not safe for concurrent use, running is.
//
// A child between clone and execve can do nothing else: see the package comment.
type Script struct {
	// Method is how the child is made that runs it. [Process.Script] has that of its starter.
	Method Method

	calls []call
	text  []*byte // keeps the strings that arguments point to
}

// call is one system call. What its arguments are is in from, see [Arg].
type call struct {
	what     string
	trap     uintptr
	args     [6]uintptr
	from     [6]int16
	tolerate unix.Errno
	opens    bool
}

// Arg is an argument of a call.
type Arg struct {
	value uintptr
	from  int16 // 0: value; n > 0: result of call n-1; n < 0: parameter -n-1
}

// Int is a constant.
func Int[T ~int | ~uint | ~uint64 | ~uintptr](n T) Arg { return Arg{value: uintptr(n)} }

// At is AT_FDCWD, the child's root directory.
var at = Arg{value: ^uintptr(99)} // AT_FDCWD is -100

// At is the directory that relative paths start at.
func At() Arg { return at }

// Param is the run's parameter number n.
func Param(n int) Arg { return Arg{from: int16(-n - 1)} }

// Tolerance of a call's failure.
const (
	// Never makes every error the end of the run.
	Never unix.Errno = 0
	// Any passes over every error.
	Any unix.Errno = ^unix.Errno(0)
)

// Text is a constant string, for the kernel to read.
func (t *Script) Text(s string) Arg {
	p, err := unix.BytePtrFromString(s)
	if err != nil {
		panic("spawn: a script's text has a NUL") // it is the program's own
	}
	t.text = append(t.text, p)
	return Pointer(unsafe.Pointer(p))
}

// Do adds a call. It ends the run when it fails, unless with the error that is
// tolerated. A call whose argument is the result of one that failed, or was left
// out, is left out. The result is an argument for later calls.
func (t *Script) Do(what string, tolerate unix.Errno, trap uintptr, args ...Arg) Arg {
	return t.add(call{what: what, tolerate: tolerate, trap: trap}, args)
}

// Open is Do for a call whose result is a descriptor: the run gives it to the
// caller, who closes it.
func (t *Script) Open(what string, tolerate unix.Errno, trap uintptr, args ...Arg) Arg {
	return t.add(call{what: what, tolerate: tolerate, trap: trap, opens: true}, args)
}

// maxCalls bounds a script: an Arg counts them in 16 bits, and results lie on one array.
const maxCalls = 256

func (t *Script) add(c call, args []Arg) Arg {
	if len(t.calls) == maxCalls || len(args) > len(c.args) {
		panic(fmt.Sprintf("spawn: a script of more than %d calls, or a call of %d arguments", maxCalls, len(args)))
	}
	for i, a := range args {
		c.args[i], c.from[i] = a.value, a.from
	}
	t.calls = append(t.calls, c)
	return Arg{from: int16(len(t.calls))}
}

// run is what the child works from, and where it leaves what came of it.
type run struct {
	calls  []call
	params []uintptr
	*played
}

// CallError is the call at which a run ended.
type CallError struct {
	What  string // as it was written
	Errno unix.Errno
}

func (e *CallError) Error() string { return e.What + ": " + e.Errno.Error() }
func (e *CallError) Unwrap() error { return e.Errno }

// err says what came of it.
func (r *run) err() error {
	switch {
	case r.failed >= 0:
		return &CallError{What: r.calls[r.failed].what, Errno: r.errno}
	case !r.done:
		return fmt.Errorf("visit a sandbox: the child was killed")
	}
	return nil
}

// opened is what it left open.
func (r *run) opened() *Opened {
	p := &Opened{fds: make([]int, len(r.calls))}
	for i := range r.calls {
		p.fds[i] = -1
		if fd := r.results[i]; r.calls[i].opens && r.made(i) && fd != noResult {
			p.fds[i] = int(fd)
		}
	}
	return p
}

// made tells whether the child came to call i.
func (r *run) made(i int) bool { return i < r.reached }

const noResult = ^uintptr(0)

// run makes the calls. It runs in the child.
//
//go:norace
//go:nosplit
//go:nocheckptr
func (r *run) run() {
calls:
	for i := range r.calls {
		r.reached = i
		c := &r.calls[i]
		a := c.args
		for n, from := range c.from {
			switch {
			case from > 0:
				if a[n] = r.results[from-1]; a[n] == noResult {
					r.results[i] = noResult
					continue calls
				}
			case from < 0:
				a[n] = r.params[-from-1]
			}
		}
		v, _, e := syscall.RawSyscall6(c.trap, a[0], a[1], a[2], a[3], a[4], a[5])
		if e != 0 {
			r.results[i] = noResult
			if c.tolerate != e && c.tolerate != Any {
				r.failed, r.errno = i, e
				return
			}
			continue
		}
		r.results[i] = v
	}
	r.reached = len(r.calls)
	r.done = true
}

// Pointer is the address of what the writer of the script keeps on the heap as long as
// the script, for the kernel to read: what a call writes there may be lost, since the child may
// have a copy of it.
func Pointer(p unsafe.Pointer) Arg { return Arg{value: uintptr(p)} }

// Opened is what a run of a script left open.
type Opened struct {
	fds []int // by call; -1: none
}

// Take takes the descriptor that a call opened over; the file is the caller's.
func (p *Opened) Take(a Arg, name string) *os.File {
	fd := p.fds[a.from-1]
	p.fds[a.from-1] = -1
	return os.NewFile(uintptr(fd), name)
}

// Close closes what was not taken.
func (p *Opened) Close() {
	for i, fd := range p.fds {
		if fd >= 0 {
			_ = unix.Close(fd)
			p.fds[i] = -1
		}
	}
}
