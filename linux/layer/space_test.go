// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package layer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/fault"
)

// hostDisk makes an ext4 of that size, in no mount namespace, and returns its top directory.
func hostDisk(t *testing.T, size int64) string {
	t.Helper()
	needLoop(t)
	image := filepath.Join(t.TempDir(), "host")
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %v: %s", err, out)
	}
	dev, err := attachLoop(file)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	fs, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fs)
	if err := errors.Join(unix.FsconfigSetString(fs, "source", dev.path), unix.FsconfigCreate(fs)); err != nil {
		t.Fatal(err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(mount) })
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), mount) // mkfs follows it, too
}

// leave fills the file system of dir with a file until only so many bytes are free.
func leave(t *testing.T, dir string, bytes int64) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const margin = 4 * mib // of the file system's own metadata
	taken := freeOf(t, dir) - bytes - margin
	if err := fallocate(f, 0, taken); err != nil {
		t.Fatal(err)
	}
	if bytes > 0 {
		return ballast
	}
	if _, err := io.Copy(io.NewOffsetWriter(f, taken), zeros{}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the rest: %v, want ENOSPC", err)
	}
	return ballast
}

func freeOf(t *testing.T, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * int64(st.Bsize)
}

// writeUntilFull writes files of a size to a directory until one fails, and returns the error and the bytes.
func writeUntilFull(dir string, size int) (written int64, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	data := make0(size)
	for i := 0; ; i++ {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), data, 0o644); err != nil {
			return written, err
		}
		written += int64(size)
	}
}

// allocateUntilFull has a new file take what is left for data.
func allocateUntilFull(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	end := int64(0)
	for step := int64(256 << 20); step >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, end, step); err {
		case nil:
			end += step
		case unix.ENOSPC:
			step /= 2
		case unix.EINTR:
		default:
			t.Fatal(err)
		}
	}
}

// fillTogether fills several directories at once, those after the first two with small files.
func fillTogether(t *testing.T, dirs ...string) (written int64) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, dir := range dirs {
		all.Go(func() {
			size := 1 << 20
			if i > 1 {
				size = 3000
			}
			n, err := writeUntilFull(dir, size)
			if !errors.Is(err, unix.EDQUOT) && !errors.Is(err, unix.ENOSPC) {
				t.Errorf("%s: %v, want a full disk", dir, err)
			}
			mu.Lock()
			written += n
			mu.Unlock()
		})
	}
	all.Wait()
	return written
}

func wantFull(t *testing.T, what string, err error, disk fault.Disk) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Full || f.Disk != disk || f.Remedy == "" {
		t.Errorf("%s = %v, want full, of the disk %q, with a remedy", what, err, disk)
	}
}

// A store that its disks have filled takes nothing new and leaves nothing of what failed; all that
// is in it can be removed, and then it takes new ones.
func TestAFullStoreStillDeletes(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	ids := []string{"writerone", "writertwo", "writerthree", "writerfour"}
	var dirs []string
	var layers []*Layer
	for _, id := range ids {
		layers = append(layers, mustCreate(t, s, id, 0))
		dirs = append(dirs, at(layers[len(layers)-1].Fd(), "upper"))
	}
	mustSnapshot(t, s, "writerone", "snapshotone")
	if err := s.CreateVolume("volumeone", 0); err != nil {
		t.Fatal(err)
	}
	fillTogether(t, dirs...)
	until(t, "the store is seen to be full", func() bool { return s.Room() != nil })

	for i := range 40 {
		id := fmt.Sprintf("failedlayer%d", i)
		_, err := s.Create(id, 0)
		wantFull(t, "Create", err, fault.StoreDisk)
		_, err = s.Fork(t.Context(), id, "writerone", 0)
		wantFull(t, "Fork", err, fault.StoreDisk)
	}
	_, err := s.Snapshot(t.Context(), "writerone", "snapshottwo")
	wantFull(t, "Snapshot", err, fault.StoreDisk)
	wantFull(t, "CreateVolume", s.CreateVolume("volumetwo", 0), fault.StoreDisk)
	_, err = s.Import(t.Context(), "imported", strings.NewReader(""), gib)
	wantFull(t, "Import", err, fault.StoreDisk)
	if got, err := s.List(); err != nil || len(got) != len(ids) {
		t.Errorf("layers = %q, %v; want those that were made before", got, err)
	}

	for _, l := range layers {
		l.Close()
	}
	for _, err := range []error{s.Remove("writerthree"), s.RemoveVolume("volumeone"), s.RemoveSnapshot("snapshotone"), s.Remove("writerone")} {
		if err != nil {
			t.Errorf("remove: %v", err)
		}
	}
	until(t, "the store takes new layers", func() bool {
		l, err := s.Create("afterwards", 0)
		if err != nil {
			return false
		}
		defer l.Close()
		return os.WriteFile(at(l.Fd(), "upper/file"), make0(1<<20), 0o644) == nil
	})
}

// With no room for a single rename, what is removed is deleted where it is.
func TestRemovalNeedsNoSpace(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	for _, id := range []string{"layerone", "layertwo"} {
		l := mustCreate(t, s, id, 0)
		writeFile(t, at(l.Fd(), "upper/file"), make0(10<<20))
		writeFile(t, at(s.logs, id+"/log"), make0(10<<20))
	}
	allocateUntilFull(t, at(s.logs, "layerone/large"))
	// Empty files are metadata only. Without commits btrfs may promise more of that than there
	// is, beside a load, and become read-only instead of refusing.
	for i := 0; ; i++ {
		path := at(s.logs, fmt.Sprintf("layerone/%0200d", i))
		err := os.WriteFile(path, nil, 0o600)
		if err == nil && i%100 == 0 {
			err = commit(s.top)
		}
		if err == nil {
			err = unix.Rename(path, path+"renamed")
		}
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatalf("an empty file: %v, want ENOSPC", err)
		}
	}
	for _, id := range []string{"layerone", "layertwo"} {
		if err := s.Remove(id); err != nil {
			t.Errorf("Remove(%s): %v", id, err)
		}
		if _, err := s.Open(id); !fault.Is(err, fault.NotFound) {
			t.Errorf("Open(%s) = %v, want not_found", id, err)
		}
	}
	if left, err := names(s.logs); err != nil || len(left) > 0 {
		t.Errorf("logs = %q, %v; want none", left, err)
	}
}

// Writers are held back before the host's disk is full, whoever fills that, and go on when it
// has space again; the store's file system stays as it is.
func TestAFullHostHoldsWritersBack(t *testing.T) {
	host := hostDisk(t, 3<<30)
	s := mustOpen(t, Options{Dir: filepath.Join(host, "store"), Kind: Loop})
	needLimits(t, s)
	a, b := mustCreate(t, s, "writerone", 0), mustCreate(t, s, "writertwo", 0)
	reserve := hostReserve(s.Space().HostSizeBytes)
	ballast := leave(t, host, reserve+200<<20)
	until(t, "the limit of all is what the host has", func() bool { return s.Space().RoomBytes <= 210<<20 })

	written := fillTogether(t, at(a.Fd(), "upper"), at(b.Fd(), "upper"))
	if err := unix.Syncfs(s.top); err != nil {
		t.Errorf("what was written is not on the disk: %v", err)
	}
	if free := freeOf(t, host); free < reserve/2 {
		t.Errorf("the writers left %d MiB of the host's disk, of a reserve of %d, and wrote %d", free/mib, reserve/mib, written/mib)
	}
	until(t, "the host is seen to be full", func() bool { return s.Room() != nil })
	_, err := s.Create("failedlayer", 0)
	wantFull(t, "Create", err, fault.HostDisk)
	if err := s.Remove("writertwo"); err != nil {
		t.Error(err)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	until(t, "writers go on", func() bool { return os.WriteFile(at(a.Fd(), "upper/0"), make0(100<<20), 0o644) == nil })
	mustCreate(t, s, "afterwards", 0)
	if s.Space().Failed != nil {
		t.Error("the store failed")
	}
}

// Metadata of the store has the host's disk to itself: also with nothing left of that, btrfs
// commits what was removed, and is not read-only afterwards.
func TestMetadataHasTheHostsDiskToItself(t *testing.T) {
	host := hostDisk(t, 3<<30)
	s := mustOpen(t, Options{Dir: filepath.Join(host, "store"), Kind: Loop})
	a := mustCreate(t, s, "writerone", 0)
	writeFile(t, at(a.Fd(), "upper/before"), make0(8<<20))
	if err := unix.Syncfs(s.top); err != nil {
		t.Fatal(err)
	}
	leave(t, host, 0)
	for i := range 200 {
		if err := unix.Mkdirat(a.Fd(), fmt.Sprintf("upper/%d", i), 0o755); err != nil && err != unix.EDQUOT {
			t.Fatal(err)
		}
		if i%20 == 0 {
			if err := commit(s.top); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(s.Remove("writerone"), commit(s.top)); err != nil {
		t.Errorf("a removal: %v", err)
	}
	if s.look(); s.Space().Failed != nil {
		t.Error("the store failed")
	}
}

// breakDevice has the store's device end before what is written, so that btrfs becomes read-only.
func breakDevice(t *testing.T, s *Store) {
	t.Helper()
	fd, err := unix.Open(s.loop.device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	info, err := unix.IoctlLoopGetStatus64(fd)
	if err != nil {
		t.Fatal(err)
	}
	info.Sizelimit = mib
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkdirat(s.top, "write", 0o755); err == nil {
		_ = commit(s.top)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(s.top, &st); err != nil || st.Flags&unix.ST_RDONLY == 0 {
		t.Fatalf("the store is not read-only: %v", err)
	}
	info.Sizelimit = 0
	if err := unix.IoctlLoopSetStatus64(fd, info); err != nil {
		t.Fatal(err)
	}
}

// A store whose file system has become read-only says so, and is itself again once those who
// use it have gone.
func TestAFailedStoreIsMountedAnew(t *testing.T) {
	needLoop(t)
	nothingLeft(t)
	s := mustOpen(t, Options{Dir: filepath.Join(t.TempDir(), "store"), Kind: Loop})
	l := mustCreate(t, s, "firstlayer", 0)
	writeFile(t, at(l.Fd(), "upper/file"), []byte("kept"))
	if err := unix.Syncfs(s.top); err != nil {
		t.Fatal(err)
	}
	breakDevice(t, s)
	<-s.Failed()
	if _, err := s.Create("otherlayer", 0); !fault.Is(err, fault.Unavailable) || fault.As(err).Remedy == "" {
		t.Errorf("Create = %v, want unavailable, with a remedy", err)
	}
	done := make(chan error)
	go func() { done <- s.Remount(t.Context()) }()
	l.Close() // the last that uses it
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	again, err := s.Open("firstlayer")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if got := readFile(t, at(again.Fd(), "upper/file")); got != "kept" {
		t.Errorf("file = %q", got)
	}
	mustCreate(t, s, "otherlayer", 0)
	if err := s.Remount(t.Context()); !fault.Is(err, fault.State) {
		t.Errorf("Remount of a store that is well = %v, want state", err)
	}
}

// A server that finds a failed file system which outlived its last one has it let go of, and
// opens the store.
func TestAFailedStoreOutlivesNoServer(t *testing.T) {
	needLoop(t)
	nothingLeft(t)
	opts := Options{Dir: filepath.Join(t.TempDir(), "store"), Kind: Loop}
	s := mustOpen(t, opts)
	l := mustCreate(t, s, "firstlayer", 0)
	breakDevice(t, s)
	_ = s.Close() // the layer stays open, as a sandbox would
	if _, err := Open(t.Context(), withAttach(opts)); err == nil {
		t.Fatal("a failed store can be opened while it is in use")
	}
	opts.Evict = func(ctx context.Context) error { return l.Close() }
	again := mustOpen(t, opts)
	mustCreate(t, again, "otherlayer", 0)
}

// A store of an earlier version has no group of all disks: they are made members when it is opened.
func TestDisksOfAnEarlierStoreAreLimitedTogether(t *testing.T) {
	needLoop(t)
	s := mustOpen(t, Options{Dir: t.TempDir(), Kind: Loop})
	needLimits(t, s)
	s.group = 0
	old := mustCreate(t, s, "olderlayer", 0)
	args := qgroupCreateArgs{group: storeGroup} // deletes it
	if err := ioctl(s.top, btrfsQgroupCreate, unsafe.Pointer(&args)); err != nil {
		t.Fatal(err)
	}
	if err := s.openGroupOfAll(); err != nil {
		t.Fatal(err)
	}
	before := s.readHoldings()
	writeFile(t, at(old.Fd(), "upper/file"), make0(10<<20))
	writeFile(t, at(mustCreate(t, s, "newerlayer", 0).Fd(), "upper/file"), make0(10<<20))
	if err := unix.Syncfs(s.top); err != nil {
		t.Fatal(err)
	}
	if grown := s.readHoldings().used - before.used; grown < 19<<20 {
		t.Errorf("all disks together grew by %d bytes, want those of two files of %d", grown, 10<<20)
	}
}
