// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Listener gets the calls that a filter hands over, and answers them.
type Listener struct {
	file *os.File
	conn syscall.RawConn
}

// Call is a system call that waits for its answer. Everything in it is the caller's to choose.
type Call struct {
	// Thread is the caller's thread id in the listener's pid namespace.
	Thread int
	Number int
	Args   [6]uint64

	id uint64
}

// Listen is [Install] with a filter that hands calls over, by SECCOMP_RET_USER_NOTIF: the threads that
// make them wait until the listener answered. One who waits can be killed and frozen; a signal has the
// call begin anew, or is EINTR where its handler says so. To wait in a way that no signal ends
// (SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) would keep the freezer waiting for a listener that it froze.
//
// The listener is nil where the thread has a filter with one already, above our own: the kernel lets
// it have one. The filter is installed so that it allows those calls.
func Listen(prog []byte) (*Listener, error) {
	fd, err := install(prog, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	if errors.Is(err, unix.EBUSY) {
		return nil, Install(unheard(prog))
	}
	if err != nil {
		return nil, err
	}
	// Without it a wait for calls would hold a thread.
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_RDWR|unix.O_NONBLOCK); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("seccomp: listen: %w", err)
	}
	l := &Listener{file: os.NewFile(uintptr(fd), "seccomp")}
	if l.conn, err = l.file.SyscallConn(); err != nil {
		_ = l.file.Close()
		return nil, fmt.Errorf("seccomp: listen: %w", err)
	}
	return l, nil
}

// unheard is prog with the calls allowed that it hands over.
func unheard(prog []byte) []byte {
	out := make([]byte, len(prog))
	copy(out, prog)
	for i := 0; i+instructionSize <= len(out); i += instructionSize {
		in := out[i : i+instructionSize]
		if binary.NativeEndian.Uint16(in) == unix.BPF_RET|unix.BPF_K && binary.NativeEndian.Uint32(in[4:]) == unix.SECCOMP_RET_USER_NOTIF {
			binary.NativeEndian.PutUint32(in[4:], unix.SECCOMP_RET_ALLOW)
		}
	}
	return out
}

// notification is the kernel's struct seccomp_notif, response its seccomp_notif_resp.
type (
	notification struct {
		id     uint64
		pid    uint32
		_      uint32
		number int32
		_      uint32
		_      uint64
		args   [6]uint64
	}
	response struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// Receive waits for a call. It is for one goroutine at a time.
func (l *Listener) Receive() (Call, error) {
	var n notification
	var failed error
	err := l.conn.Read(func(fd uintptr) bool {
		for {
			// The call that follows waits in the kernel where there is nothing to receive.
			ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if k, err := unix.Poll(ready, 0); err != nil && !errors.Is(err, unix.EINTR) {
				failed = err
				return true
			} else if k <= 0 {
				return false
			}
			if ready[0].Revents&unix.POLLIN == 0 {
				failed = os.ErrClosed // nobody is left who has the filter
				return true
			}
			n = notification{}
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n)))
			switch errno {
			case 0:
				return true
			case unix.ENOENT, unix.EINTR: // who called was killed, or interrupted
			default:
				failed = errno
				return true
			}
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return Call{}, fmt.Errorf("seccomp: receive a call: %w", err)
	}
	return Call{Thread: int(n.pid), Number: int(n.number), Args: n.args, id: n.id}, nil
}

// Memory opens the memory of who makes the call, to be closed. It is not that of another process: the
// call was still waiting after it was opened.
func (l *Listener) Memory(c Call) (*os.File, error) {
	path := "/proc/" + strconv.Itoa(c.Thread) + "/mem"
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f, id := os.NewFile(uintptr(fd), path), c.id
	if err := l.ioctl(notifIDValid, unsafe.Pointer(&id)); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// notifIDValid is SECCOMP_IOCTL_NOTIF_ID_VALID.
const notifIDValid = 0x40082102

// Return answers a call with a value, or an error where errno is not 0. A call that nobody waits for any
// more is fine.
func (l *Listener) Return(c Call, value int, errno unix.Errno) error {
	return l.answer(response{id: c.id, value: int64(value), errno: -int32(errno)})
}

// Continue has the kernel do the call as if there were no listener.
func (l *Listener) Continue(c Call) error {
	return l.answer(response{id: c.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

func (l *Listener) answer(r response) error {
	err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func (l *Listener) ioctl(request uintptr, p unsafe.Pointer) error {
	var errno unix.Errno
	err := l.conn.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(p))
	})
	runtime.KeepAlive(p)
	if err == nil && errno != 0 {
		err = errno
	}
	if err != nil {
		return fmt.Errorf("seccomp: answer a call: %w", err)
	}
	return nil
}

// Close has the kernel answer ENOSYS to all that is handed over from then on.
func (l *Listener) Close() error { return l.file.Close() }
