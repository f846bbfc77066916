// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// waker wakes the reader when the first event is queued, and is silent while it does
// not listen.
//
// The queue itself is not given to Go's poller: that would stay woken by every event,
// and each wake-up is paid by the system call that causes the event (6 µs of the 60
// that making a file takes) and by the core that the server wakes on.
type waker struct {
	file  *os.File // an epoll instance, which Go's poller knows
	queue int      // what it listens to
}

func newWaker(queue int) (*waker, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil { // os.NewFile knows by it that the file can be waited for
		_ = unix.Close(fd)
		return nil, err
	}
	return &waker{file: os.NewFile(uintptr(fd), "fanotify"), queue: queue}, nil
}

// wait returns nil once the queue is not empty, and an error where it was ended by
// [waker.wake] or the waker is closed. One wait at a time.
func (b *waker) wait() error {
	conn, err := b.file.SyscallConn()
	if err != nil {
		return err
	}
	if err := b.listen(conn, unix.EPOLL_CTL_ADD); err != nil {
		return err
	}
	// It looks before it waits: what came before it listened wakes it no more.
	err = conn.Read(func(uintptr) bool { return queued(b.queue) })
	return errors.Join(err, b.listen(conn, unix.EPOLL_CTL_DEL))
}

// listen begins to listen, or ends it.
func (b *waker) listen(conn syscall.RawConn, op int) (err error) {
	cerr := conn.Control(func(epoll uintptr) {
		err = unix.EpollCtl(int(epoll), op, b.queue, &unix.EpollEvent{Events: unix.EPOLLIN})
	})
	return errors.Join(err, cerr)
}

// wake ends a wait, also one that begins later; until reset.
func (b *waker) wake() { _ = b.file.SetReadDeadline(time.Unix(1, 0)) }

func (b *waker) reset() { _ = b.file.SetReadDeadline(time.Time{}) }

func (b *waker) close() error { return b.file.Close() }
