// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

func TestKind(t *testing.T) {
	needRoot(t)
	t.Run("TheBestThatWorksIsTaken", func(t *testing.T) {
		needLoop(t)
		nothingLeft(t)
		if got := mustOpen(t, Options{Dir: btrfsDir(t)}).Info(); got.Kind != Btrfs || len(got.Declined) != 0 {
			t.Errorf("on btrfs: %+v", got)
		}
		got := mustOpen(t, Options{Dir: t.TempDir(), SizeBytes: minLoopSize}).Info()
		if got.Kind != Loop || len(got.Declined) != 1 || got.SizeBytes != minLoopSize || got.FreeBytes <= 0 || got.HostFreeBytes <= 0 {
			t.Errorf("elsewhere: %+v", got)
		}
	})
	t.Run("PlainSaysWhyAndHowToMendIt", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := findMkfs(); err == nil {
			// It is where PATH need not lead: take away something else.
			s := mustOpen(t, Options{Dir: t.TempDir(), SizeBytes: 1 << 60})
			checkPlain(t, s.Info(), fault.Exhausted)
			return
		}
		checkPlain(t, mustOpen(t, Options{Dir: t.TempDir()}).Info(), fault.Unsupported)
	})
	t.Run("AStoreWithLayersKeepsItsKind", func(t *testing.T) {
		needLoop(t)
		nothingLeft(t)
		dir := t.TempDir()
		s := mustOpen(t, Options{Dir: dir, Kind: Plain})
		mustCreate(t, s, "plainlayer", 0)
		s.Close()
		if _, err := Open(t.Context(), Options{Dir: dir, Kind: Loop}); !fault.Is(err, fault.State) {
			t.Errorf("Open as loop = %v, want state", err)
		}
		s = mustOpen(t, Options{Dir: dir})
		if got := s.Info(); got.Kind != Plain || len(got.Declined) != 2 || got.DiskLimit == nil {
			t.Errorf("reopened: %+v", got)
		}
		if err := s.Remove("plainlayer"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		s = mustOpen(t, Options{Dir: dir, SizeBytes: minLoopSize})
		if got := s.Info().Kind; got != Loop {
			t.Errorf("emptied and reopened: %s, want loop", got)
		}
		s.Close()
		if _, err := Open(t.Context(), Options{Dir: dir, Kind: Plain}); !fault.Is(err, fault.State) {
			t.Errorf("Open as plain = %v, want state", err)
		}
	})
	t.Run("BadOptionsAreRefused", func(t *testing.T) {
		dir := t.TempDir()
		for name, opts := range map[string]Options{
			"no directory": {}, "unknown kind": {Dir: dir, Kind: "zfs"}, "too small": {Dir: dir, SizeBytes: mib}, "negative": {Dir: dir, SizeBytes: -1},
		} {
			if _, err := Open(t.Context(), opts); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: Open = %v, want invalid", name, err)
			}
		}
		if _, err := Open(t.Context(), Options{Dir: filepath.Join(dir, "no", "parent")}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("no parent: Open = %v, want unavailable", err)
		}
	})
	t.Run("AnOpenThatWaitsForAnotherEndsWithItsContext", func(t *testing.T) {
		dir, err := os.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, err := Open(ctx, Options{Dir: dir.Name(), Kind: Plain}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Open = %v, want unavailable", err)
		}
	})
}

func checkPlain(t *testing.T, got Info, code fault.Code) {
	t.Helper()
	i := slices.IndexFunc(got.Declined, func(d Declined) bool { return d.Kind == Loop })
	if got.Kind != Plain || i < 0 || !fault.Is(got.Declined[i].Err, code) {
		t.Fatalf("Info = %+v, want plain and a reason with code %s", got, code)
	}
	if !fault.Is(got.DiskLimit, fault.Unsupported) || fault.As(got.DiskLimit).Remedy == "" {
		t.Errorf("DiskLimit = %v, want unsupported with a remedy", got.DiskLimit)
	}
}

// TestLayerUnderASandbox uses a layer as the driver does: mapped to a user
// namespace's ids, under an overlay, twice.
func TestLayerUnderASandbox(t *testing.T) {
	eachKind(t, func(t *testing.T, opts Options) {
		const base = 200000
		userns := userNamespace(t, base)
		s := mustOpen(t, opts)
		l := mustCreate(t, s, "mappedlayer", 0)
		logs, err := s.Logs("mappedlayer")
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		mapped := func(fd int) int {
			clone := cloneOf(t, fd)
			t.Cleanup(func() { unix.Close(clone) })
			attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns.Fd())}
			if err := unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH, &attr); err != nil {
				t.Skipf("the file system under the test takes no idmapped mounts: %v", err)
			}
			return clone
		}
		touch := func(fd int, name string) error {
			cmd := exec.Command("touch", "/proc/self/fd/3/"+name)
			dir := os.NewFile(uintptr(reopen(t, fd)), "dir")
			defer dir.Close()
			cmd.ExtraFiles = []*os.File{dir}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: base, Gid: base}}
			return cmd.Run()
		}
		if err := touch(mapped(int(logs.Fd())), "1.log"); err != nil {
			t.Errorf("the sandbox's root cannot write a log: %v", err)
		}
		var st unix.Stat_t
		if err := unix.Stat(at(int(logs.Fd()), "1.log"), &st); err != nil || st.Uid != 0 {
			t.Errorf("the log's owner on disk is %d, %v; want 0", st.Uid, err)
		}
		for round, name := range []string{"first", "second"} {
			if err := l.FreshWork(); err != nil {
				t.Fatal(err)
			}
			root := overlay(t, cloneOf(t, l.Fd()))
			writeFile(t, at(root, name), []byte("x"))
			if entries, err := os.ReadDir(at(root, "")); err != nil || len(entries) != round+1 {
				t.Errorf("round %d sees %v, %v", round, entries, err)
			}
			unix.Close(root)
		}
		if entries, err := os.ReadDir(at(l.Fd(), "upper")); err != nil || len(entries) != 2 {
			t.Errorf("upper = %v, %v; want two files", entries, err)
		}
	})
}

// userNamespace returns a user namespace whose root is base outside.
func userNamespace(t *testing.T, base int) *os.File {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: base, Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	if err := cmd.Start(); err != nil {
		t.Skipf("the host gives no user namespaces: %v", err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	f, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func reopen(t *testing.T, fd int) int {
	t.Helper()
	dir, err := openDir(fd, ".")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// overlay mounts an overlay on a clone of a layer, detached, over an empty
// lower layer. It takes the clone.
func overlay(t *testing.T, clone int) int {
	t.Helper()
	defer unix.Close(clone)
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		t.Skipf("the kernel has no overlay: %v", err)
	}
	defer unix.Close(fs)
	for key, path := range map[string]string{"lowerdir+": t.TempDir(), "upperdir": at(clone, "upper"), "workdir": at(clone, "work")} {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.FsconfigSetFd(fs, key, fd); err != nil {
			t.Skipf("the kernel's overlay takes no descriptors (Linux 6.13): %v", err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		t.Fatalf("overlay: %v: %s", err, kernelLog(fs))
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return root
}
