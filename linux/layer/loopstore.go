// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

const (
	loopFile    = "layers.btrfs"
	unfinished  = loopFile + ".new" // formatted under this name, then renamed
	minLoopSize = 2 << 30
	maxLoopSize = 1 << 40
	gib         = 1 << 30

	// nodeSize is of the blocks of metadata: the least there is, a quarter of the usual. A
	// snapshot counts one more reference to each block below the top one, and the first
	// write to a copy to each block beside those on its way: that many fewer here. With
	// 1,000,000 files a snapshot takes 3 ms instead of 8 at half the usual size.
	nodeSize = 4 << 10

	// detachTimeout bounds the wait for the kernel to release a file system whose last user
	// has ended.
	detachTimeout = 30 * time.Second
)

// loopSize bounds the size of a new loop file. The file is sparse, so its size
// is a promise to btrfs which the host's disk must be able to keep: where it
// cannot, btrfs meets an i/o error and stops writing for everybody. Half of
// what is free leaves as much to the host and to the images.
func loopSize(dir int, want int64) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(dir, &st); err != nil {
		return 0, err
	}
	free := int64(st.Bavail) * int64(st.Bsize)
	if want != 0 {
		if want > free {
			return 0, fault.New(fault.Exhausted, "a store of %d bytes does not fit: %d bytes are free", want, free).
				WithRemedy("free space in the data directory's file system, or ask for a smaller store")
		}
		return want / loopBlockSize * loopBlockSize, nil
	}
	size := min(free/2/gib*gib, maxLoopSize)
	if size < minLoopSize {
		return 0, fault.New(fault.Exhausted, "%d bytes are free; a sized store needs twice %d", free, int64(minLoopSize)).
			WithRemedy("free space in the data directory's file system")
	}
	return size, nil
}

// openLoop mounts the store in dir/layers.btrfs, which it makes first where it
// is missing. The caller holds the store's lock.
func openLoop(ctx context.Context, dir *os.File, opts Options) (*loopStore, error) {
	path := filepath.Join(opts.Dir, loopFile)
	file, err := openRegular(dir, loopFile)
	if err == nil {
		ls, err := remountStore(ctx, file, path, opts)
		if err != nil {
			file.Close()
		}
		return ls, err
	}
	if !errors.Is(err, unix.ENOENT) {
		return nil, fault.Wrap(fault.Unavailable, err, "%s cannot be opened (%s)", path, err)
	}
	size, err := loopSize(int(dir.Fd()), opts.SizeBytes)
	if err != nil {
		return nil, err
	}
	// An unfinished file belongs to no store: it never had its final name. An orphaned
	// mkfs may still write to it, and writes to what has no name then.
	if err := unix.Unlinkat(int(dir.Fd()), unfinished, 0); err != nil && err != unix.ENOENT {
		return nil, fmt.Errorf("remove the unfinished store: %w", err)
	}
	ls, err := makeStore(ctx, dir, opts, size)
	if err != nil {
		unix.Unlinkat(int(dir.Fd()), unfinished, 0)
		return nil, err
	}
	return ls, nil
}

// makeStore formats a new file, mounts it, turns quotas on and only then gives
// it its name: what has the name is complete.
func makeStore(ctx context.Context, dir *os.File, opts Options, size int64) (*loopStore, error) {
	tmp := filepath.Join(opts.Dir, unfinished)
	file, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the store's file: %w", err)
	}
	kept := false
	defer func() {
		if !kept {
			file.Close()
		}
	}()
	if err := file.Truncate(size); err != nil {
		return nil, fault.Wrap(fault.Unsupported, err, "the data directory's file system takes no sparse file of %d bytes (%s)", size, err)
	}
	if err := formatBtrfs(ctx, tmp); err != nil {
		return nil, err
	}
	ls, err := mountStore(ctx, file, filepath.Join(opts.Dir, loopFile), opts.attach())
	if err != nil {
		return nil, err
	}
	kept = true // by ls
	// Now or never: quotas count only what is written after they were turned
	// on. Without them the store is as good, but unlimited.
	if err := enableSimpleQuotas(ls.root); err != nil {
		opts.Logger.Warn("the store has no simple quotas", "error", err)
	}
	err = unix.Syncfs(ls.root)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = unix.Renameat2(int(dir.Fd()), unfinished, int(dir.Fd()), loopFile, unix.RENAME_NOREPLACE)
	}
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		ls.Close()
		return nil, fmt.Errorf("finish the store: %w", err)
	}
	return ls, nil
}

func formatBtrfs(ctx context.Context, path string) error {
	mkfs, err := findMkfs()
	if err != nil {
		return err
	}
	// Single copies: a second copy of the metadata in the same file would
	// survive nothing that the file does not.
	args := []string{"-q", "-L", "sandpit", "-m", "single", "-d", "single"}
	if os.Getpagesize() <= nodeSize {
		args = append(args, "-n", strconv.Itoa(nodeSize))
	}
	out, err := exec.CommandContext(ctx, mkfs, append(args, path)...).CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fault.Wrap(fault.Unsupported, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out))),
			"%s failed (%s)", mkfs, err).WithRemedy("run it by hand on a file to see why; the server's log has what it said")
	}
	return nil
}

// findMkfs looks also where PATH often does not lead for root.
func findMkfs() (string, error) {
	for _, name := range []string{"mkfs.btrfs", "/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fault.New(fault.Unsupported, "mkfs.btrfs is not installed").
		WithRemedy("install it: apt-get install btrfs-progs")
}

// openRegular opens a regular file in dir for reading and writing; it follows
// no link and waits for no fifo.
func openRegular(dir *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// A loopStore is a mounted loop file. The loop device is not among its fields:
// the mount keeps it, and clears it when it goes.
type loopStore struct {
	file     *os.File
	mount    int // of the detached mount; O_PATH
	root     int // its top directory, for ioctls
	device   string
	directIO bool
}

func (l *loopStore) Close() {
	unix.Close(l.root)
	unix.Close(l.mount)
	l.file.Close()
}

// attach makes it possible to clone parts of the mount.
func (o *Options) attach() func(mount int) error {
	if o.Attach != nil {
		return o.Attach
	}
	return canClone
}

// An abortedError says that the file system is mounted already, by what outlived a server,
// and is read-only after an error.
type abortedError struct{ err error }

func (e *abortedError) Error() string {
	return "it is read-only after an error, and in use by what runs in sandboxes: " + e.err.Error()
}

func (e *abortedError) Unwrap() error { return e.err }

// remountStore is mountStore for a store that was mounted before, perhaps by a server that is
// gone: where what outlived that one holds a file system that has failed, it is evicted.
func remountStore(ctx context.Context, file *os.File, path string, opts Options) (*loopStore, error) {
	ls, err := mountStore(ctx, file, path, opts.attach())
	var aborted *abortedError
	if !errors.As(err, &aborted) || opts.Evict == nil {
		return ls, err
	}
	opts.Logger.Error("the disk of all sandboxes failed while no server ran: what runs in them is ended, and the store is mounted anew", "error", err)
	if err := opts.Evict(ctx); err != nil {
		return nil, err
	}
	return awaitStore(ctx, file, path, opts)
}

// awaitStore mounts a store anew that is being let go.
func awaitStore(ctx context.Context, file *os.File, path string, opts Options) (*loopStore, error) {
	limit := time.NewTimer(detachTimeout)
	defer limit.Stop()
	for {
		ls, err := mountStore(ctx, file, path, opts.attach())
		var aborted *abortedError
		if !errors.As(err, &aborted) {
			return ls, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, fault.Wrap(fault.Unavailable, err, "%s failed and is still in use by some process", path).
				WithRemedy("end the processes that have files open in it; the server tries again by itself")
		case <-time.After(retryEvery):
		}
	}
}

func mountStore(ctx context.Context, file *os.File, path string, attach func(mount int) error) (*loopStore, error) {
	dev, err := attachLoop(file)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	mount, err := mountLoop(ctx, dev)
	if err != nil {
		if newer := refusedAs(file, path, featuresDir); newer != nil {
			return nil, newer
		}
		if dev.found && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EROFS)) {
			return nil, &abortedError{err}
		}
		return nil, fmt.Errorf("mount %s: %w", path, err)
	}
	if err := attach(mount); err != nil {
		unix.Close(mount)
		return nil, err
	}
	root, err := openDir(mount, ".")
	if err != nil {
		unix.Close(mount)
		return nil, fmt.Errorf("open the top of %s: %w", path, err)
	}
	return &loopStore{file: file, mount: mount, root: root, device: dev.path, directIO: dev.directIO}, nil
}
