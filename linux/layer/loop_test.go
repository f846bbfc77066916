// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
)

// cloneOf clones the mount of a directory as the driver does for a sandbox:
// the clone keeps the file system alive.
func cloneOf(t *testing.T, fd int) int {
	t.Helper()
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	skipWithoutClones(t, err)
	if err != nil {
		t.Fatal(err)
	}
	return clone
}

// skipWithoutClones skips where the kernel refused to clone a mount that is attached nowhere.
func skipWithoutClones(tb testing.TB, err error) {
	tb.Helper()
	if old, _ := mount.NeedsNamespace(); old && errors.Is(err, unix.EINVAL) {
		tb.Skip("this kernel clones no mount that is attached nowhere (Linux 6.15)")
	}
}

func TestLoop(t *testing.T) {
	needLoop(t)
	newStore := func(t *testing.T) Options {
		nothingLeft(t)
		return Options{Dir: filepath.Join(t.TempDir(), "store"), Kind: Loop, SizeBytes: minLoopSize}
	}
	t.Run("IsMountedInNoNamespaceAndGoesWithTheStore", func(t *testing.T) {
		opts := newStore(t)
		s := mustOpen(t, opts)
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(mounts), s.Info().Device) {
			t.Errorf("%s is in mountinfo:\n%s", s.Info().Device, mounts)
		}
		if got := loopsOf(t, opts.Dir); len(got) != 1 || "/dev/"+got[0] != s.Info().Device {
			t.Errorf("loop devices = %q, want %s alone", got, s.Info().Device)
		}
	})
	t.Run("IsTheSameDeviceAndFileSystemWhileASandboxHoldsIt", func(t *testing.T) {
		opts := newStore(t)
		first := mustOpen(t, opts)
		l := mustCreate(t, first, "heldlayer", 0)
		clone := cloneOf(t, l.Fd())
		defer unix.Close(clone)
		device := first.Info().Device
		l.Close()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := mustOpen(t, opts)
		if got := second.Info().Device; got != device {
			t.Errorf("device = %s, want %s", got, device)
		}
		if got := loopsOf(t, opts.Dir); len(got) != 1 {
			t.Errorf("loop devices = %q, want one", got)
		}
		writeFile(t, at(clone, "upper/file"), []byte("from the sandbox"))
		again, err := second.Open("heldlayer")
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if got := readFile(t, at(again.Fd(), "upper/file")); got != "from the sandbox" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("IsFoundUnderAnotherPath", func(t *testing.T) {
		opts := newStore(t)
		first := mustOpen(t, opts)
		device := first.Info().Device
		moved := opts
		moved.Dir = filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(opts.Dir, moved.Dir); err != nil {
			t.Fatal(err)
		}
		if got := mustOpen(t, moved).Info().Device; got != device {
			t.Errorf("device = %s, want %s", got, device)
		}
	})
	t.Run("AKilledServerLeavesNoMountAndNoDevice", func(t *testing.T) {
		opts := newStore(t)
		cmd, out := server(t, opts.Dir)
		if line, err := out.ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
			t.Fatalf("server: %q, %v", line, err)
		}
		if got := loopsOf(t, opts.Dir); len(got) != 1 {
			t.Fatalf("loop devices = %q, want one", got)
		}
		cmd.Process.Kill()
		cmd.Wait()
		until(t, "the loop device is gone", func() bool { return len(loopsOf(t, opts.Dir)) == 0 })
		s := mustOpen(t, opts)
		l, err := s.Open("fromthechild")
		if err != nil {
			t.Fatalf("the layer that the killed server made: %v", err)
		}
		l.Close()
	})
	t.Run("ASandboxOutlivesAKilledServer", func(t *testing.T) {
		opts := newStore(t)
		cmd, out := server(t, opts.Dir)
		line, err := out.ReadString('\n')
		fields := strings.Fields(line)
		if err != nil || len(fields) != 2 || fields[0] != "ready" {
			t.Fatalf("server: %q, %v", line, err)
		}
		theirs, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		pidfd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pidfd)
		held, err := unix.PidfdGetfd(pidfd, theirs, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(held)
		device := loopsOf(t, opts.Dir)
		cmd.Process.Kill()
		cmd.Wait()
		writeFile(t, at(held, "upper/file"), []byte("written without a server"))
		s := mustOpen(t, opts)
		if len(device) != 1 || s.Info().Device != "/dev/"+device[0] {
			t.Errorf("device = %s, want %q", s.Info().Device, device)
		}
		l, err := s.Open("fromthechild")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := readFile(t, at(l.Fd(), "upper/file")); got != "written without a server" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("TwoOpensAtOnceMakeOneStore", func(t *testing.T) {
		opts := newStore(t)
		stores := make(chan *Store)
		errs := make(chan error)
		for range 2 {
			go func() {
				s, err := Open(context.Background(), withAttach(opts))
				stores <- s
				errs <- err
			}()
		}
		devices := map[string]bool{}
		for range 2 {
			s, err := <-stores, <-errs
			if err != nil {
				t.Error(err)
				continue
			}
			defer s.Close()
			devices[s.Info().Device] = true
		}
		if len(devices) != 1 {
			t.Errorf("devices = %v, want one", devices)
		}
	})
	t.Run("GoesAroundThePageCacheBelow", func(t *testing.T) {
		s := mustOpen(t, newStore(t))
		var st unix.Statfs_t
		if err := unix.Statfs(s.Info().Dir, &st); err != nil {
			t.Fatal(err)
		}
		if st.Type != unix.EXT4_SUPER_MAGIC && st.Type != unix.XFS_SUPER_MAGIC {
			t.Skipf("direct i/o is not known of file system type %#x", st.Type)
		}
		if !s.Info().DirectIO {
			t.Error("DirectIO = false")
		}
	})
}

// fakeMkfs makes a mkfs.btrfs that runs script on $file, says its pid on a
// fifo, and waits for ever. It gives the PATH to use and the fifo.
func fakeMkfs(t *testing.T, script string) (path, fifo string) {
	t.Helper()
	dir := t.TempDir()
	fifo = filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\nfor file; do :; done\n%s\necho $$ >%s\nexec sleep 600\n", script, fifo)
	if err := os.WriteFile(filepath.Join(dir, "mkfs.btrfs"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + os.Getenv("PATH"), fifo
}

// readPID waits for the pid that a fake mkfs.btrfs says.
func readPID(t *testing.T, fifo string) int {
	t.Helper()
	// Opened for writing too, the fifo never ends before it began.
	f, err := os.OpenFile(fifo, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		t.Fatalf("mkfs.btrfs was never run: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestKillDuringFormat(t *testing.T) {
	needLoop(t)
	mkfs, err := findMkfs()
	if err != nil {
		t.Fatal(err)
	}
	for name, script := range map[string]string{
		"HalfWritten": `head -c 300000 /dev/urandom | dd of="$file" conv=notrunc 2>/dev/null`,
		"Formatted":   mkfs + ` "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			dir := filepath.Join(t.TempDir(), "store")
			path, fifo := fakeMkfs(t, script)
			cmd, _ := server(t, dir, "PATH="+path)
			pid := readPID(t, fifo)
			defer unix.Kill(pid, unix.SIGKILL)
			cmd.Process.Kill()
			cmd.Process.Wait()
			if _, err := os.Stat(filepath.Join(dir, loopFile)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stat of an unformatted store = %v, want not exist", err)
			}
			s := mustOpen(t, Options{Dir: dir, Kind: Loop})
			mustCreate(t, s, "afterwards", 0)
			if _, err := os.Stat(filepath.Join(dir, unfinished)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("stat of the unfinished store = %v, want not exist", err)
			}
		})
	}
}

func TestFormatNeverTouchesAStoreWithData(t *testing.T) {
	needLoop(t)
	t.Run("AnUnfinishedFileBesideItIsIgnored", func(t *testing.T) {
		nothingLeft(t)
		opts := Options{Dir: filepath.Join(t.TempDir(), "store")}
		opts.Kind, opts.SizeBytes = Loop, minLoopSize
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "precious", 0)
		writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
		l.Close()
		s.Close()
		writeFile(t, filepath.Join(opts.Dir, unfinished), []byte("garbage"))
		t.Setenv("PATH", t.TempDir())
		s = mustOpen(t, Options{Dir: opts.Dir})
		l, err := s.Open("precious")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := readFile(t, at(l.Fd(), "upper/file")); got != "kept" {
			t.Errorf("file = %q", got)
		}
	})
	t.Run("ADamagedStoreIsAnErrorAndStaysAsItIs", func(t *testing.T) {
		nothingLeft(t)
		dir := t.TempDir()
		file := filepath.Join(dir, loopFile)
		writeFile(t, file, make([]byte, 1<<20))
		if s, err := Open(t.Context(), Options{Dir: dir}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Open = %v, %v; want unavailable", s, err)
		}
		if st, err := os.Stat(file); err != nil || st.Size() != 1<<20 {
			t.Errorf("stat = %v, %v", st, err)
		}
	})
	t.Run("AFifoInItsPlaceIsAnError", func(t *testing.T) {
		nothingLeft(t)
		dir := t.TempDir()
		if err := unix.Mkfifo(filepath.Join(dir, loopFile), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(t.Context(), Options{Dir: dir}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Open = %v, %v; want unavailable", s, err)
		}
	})
}
