// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// Finding is something wrong with a store.
type Finding struct {
	What string
	Done string // how it was mended; empty: it was not
	Err  error  // why not, if that was tried
}

// Inspect looks for loop devices and files that were left behind, and, if it is to mend
// them, closes them and has the whole store read against its checksums, which takes
// as long as reading it. A store that fails that is left as it is: what is to be saved
// of it is for a person to say. The caller sees to it that no server has the store
// open; sandboxes that go on are not disturbed.
func Inspect(ctx context.Context, dir string, mend bool) ([]Finding, error) {
	root, err := os.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the store's directory %s cannot be opened", dir)
	}
	defer func() { _ = root.Close() }()
	if err := lock(ctx, int(root.Fd())); err != nil {
		return nil, err
	}
	var found []Finding
	if err := inspectLoops(ctx, root, mend, &found); err != nil {
		return found, err
	}
	if unix.Faccessat(int(root.Fd()), unfinished, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW) == nil {
		f := Finding{What: filepath.Join(dir, unfinished) + " is a store that was never finished"}
		if mend {
			if f.Err = unix.Unlinkat(int(root.Fd()), unfinished, 0); f.Err == nil {
				f.Done = "removed"
			}
		}
		found = append(found, f)
	}
	if mend {
		if f, bad := checkStore(ctx, root); bad {
			found = append(found, f)
		}
	}
	return found, nil
}

// inspectLoops looks at each loop device on a file of the store's directory.
func inspectLoops(ctx context.Context, dir *os.File, mend bool, found *[]Finding) error {
	var own unix.Stat_t
	has := unix.Fstatat(int(dir.Fd()), loopFile, &own, unix.AT_SYMLINK_NOFOLLOW) == nil
	bound, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return err
	}
	slices.Sort(bound)
	second := false
	for _, sys := range bound {
		name, err := os.ReadFile(sys)
		if err != nil {
			continue // it went meanwhile
		}
		file, path := strings.TrimSpace(string(name)), "/dev/"+strings.Split(sys, "/")[3]
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // it is being cleared
		}
		wrong, ours := inspectLoop(fd, dir.Name(), file, has, own, second)
		one := Finding{What: path + " " + wrong}
		if wrong != "" && mend {
			one.Done, one.Err = letGo(fd, path)
		}
		_ = unix.Close(fd)
		if wrong != "" {
			*found = append(*found, one)
		}
		if ours && one.Done != "" {
			ours = staysBound(ctx, sys)
		}
		second = second || ours
	}
	return nil
}

// inspectLoop says what is wrong with a loop device of ours, if it is ours and
// anything is. ours reports that it is on the store's file.
func inspectLoop(fd int, dir, file string, has bool, own unix.Stat_t, second bool) (wrong string, ours bool) {
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		return "", false
	}
	switch {
	case has && info.Device == own.Dev && info.Inode == own.Ino:
		switch {
		case second:
			return "is a second device on the store: two would destroy it", true
		case info.Flags&unix.LO_FLAGS_AUTOCLEAR == 0:
			return "is on the store and does not go away with its last user", true
		}
		return "", true
	case strings.HasPrefix(file, dir+"/"):
		return fmt.Sprintf("is on %s, which is no store", file), false
	}
	return "", false
}

// letGo detaches a loop device. Where something still uses it, it goes with its last
// user: that is no disturbance.
func letGo(fd int, path string) (string, error) {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.LOOP_CLR_FD, 0); errno != 0 {
		return "", fmt.Errorf("detach %s: %w", path, errno)
	}
	return "detached; it goes with its last user", nil
}

// staysBound reports whether a device that was detached keeps its file, since something
// still uses it. The kernel takes a moment for one that goes.
func staysBound(ctx context.Context, sys string) bool {
	for range 50 {
		if _, err := os.Stat(sys); err != nil {
			return false
		}
		select {
		case <-ctx.Done():
			return true
		case <-time.After(retryEvery):
		}
	}
	return true
}

// checkStore mounts the store and has the kernel read all of it against its checksums:
// the `btrfs check` of a stable release may know no simple quotas, and it looks at none
// that is in use.
func checkStore(ctx context.Context, dir *os.File) (Finding, bool) {
	path := filepath.Join(dir.Name(), loopFile)
	bad := func(err error) (Finding, bool) {
		return Finding{What: path + " is damaged", Err: fault.Wrap(fault.Unavailable, err, "%s; it is not mended without you", err).
			WithRemedy("copy the file, then try `mount -o ro,loop,rescue=all` to save what is in it, or `btrfs check --repair` on the copy")}, true
	}
	file, err := openRegular(dir, loopFile)
	if errors.Is(err, unix.ENOENT) {
		return Finding{}, false
	}
	if err != nil {
		return bad(err)
	}
	defer func() { _ = file.Close() }()
	store, err := mountStore(ctx, file, path, func(int) error { return nil })
	if fault.Is(err, fault.Unsupported) {
		return Finding{What: path + " cannot be read by this host", Err: err}, true
	}
	if err != nil {
		return bad(err)
	}
	defer store.Close()
	errs, err := scrub(ctx, store.root)
	switch {
	case err != nil:
		return Finding{What: path + " was not checked to the end", Err: err}, true
	case errs > 0:
		return bad(fmt.Errorf("%d blocks of it do not read as they were written", errs))
	}
	return Finding{}, false
}
