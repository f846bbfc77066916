// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// shrink makes room under a memory limit that is to come. A v1 limit does so by
// itself, and is refused where it cannot; v2 takes any limit, and kills for it.
func (g *Group) shrink(limit int64) error {
	h, path, err := g.holder(Memory)
	if err != nil || !h.v2 {
		return err
	}
	for tried := false; ; tried = true {
		u, err := g.Usage()
		switch {
		case err != nil:
			return err
		case u.MemoryBytes <= limit:
			return nil
		case tried:
			return inUse(limit, unix.EBUSY)
		}
		err = g.driver.kernel.write(h.dir, path+"/memory.reclaim", strconv.AppendInt(nil, u.MemoryBytes-limit, 10))
		// EAGAIN: less was freed than was asked for. A kernel before 5.19 has no such file.
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cgroup: reclaim memory of %s: %w", g.id, err)
		}
	}
}

// Reclaim has the kernel take from the commands what memory they can do without: above
// all the cache of files, which is theirs to read again. It takes as long as the
// kernel has something to take, or until ctx is done: 4 ms per 10 MB and more. Where nothing
// limits memory, or the kernel cannot, it does nothing. It is for groups that stand still.
func (g *Group) Reclaim(ctx context.Context) error {
	h, path, err := g.holder(Memory)
	if err != nil {
		return nil
	}
	file, value := path+"/memory.force_empty", []byte("0")
	if h.v2 {
		u, err := g.Usage()
		if err != nil || u.MemoryBytes == 0 {
			return err
		}
		file, value = path+"/memory.reclaim", strconv.AppendInt(nil, u.MemoryBytes, 10)
	}
	err = interruptible(ctx, func() error { return writeOnce(h.dir, file, value) })
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINTR) || errors.Is(err, fs.ErrNotExist) {
		return nil // less than all, as ever
	}
	return err
}

// writeOnce is a write that a signal ends.
func writeOnce(dir int, path string, value []byte) error {
	fd, err := openat(dir, path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, value)
	return err
}

// interruptible runs f, which is one long system call, and when ctx is done sends its
// thread a signal that Go's runtime takes and that ends the call, again and again
// until f is back.
func interruptible(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return unix.EINTR
	}
	const pause = 5 * time.Millisecond
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	back, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-back:
			return
		case <-ctx.Done():
		}
		for {
			_ = unix.Tgkill(os.Getpid(), thread, unix.SIGURG)
			select {
			case <-back:
				return
			case <-time.After(pause):
			}
		}
	}()
	err := f()
	close(back)
	<-watched // before the thread is another's
	return err
}
