// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// drive is a file system in an image, of which copies can be taken while it is in use: such a
// copy has what the disk has and nothing of what the kernel still keeps in memory.
type drive struct {
	t      *testing.T
	images string // a btrfs that holds the images, so that a copy is of one instant
	dir    string // where it is mounted
}

// newDrive makes one of so many MiB, which take no room before they are written.
func newDrive(t *testing.T, size int64) *drive {
	t.Helper()
	for _, tool := range []string{"mkfs.ext4", "mkfs.btrfs", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: %v", tool, err)
		}
	}
	base := t.TempDir()
	d := &drive{t: t, images: filepath.Join(base, "images"), dir: filepath.Join(base, "disk")}
	carrier := filepath.Join(base, "carrier")
	d.file(carrier, size+size/2)
	d.run("mkfs.btrfs", "-q", carrier)
	d.mount(carrier, d.images)
	image := filepath.Join(d.images, "disk")
	d.file(image, size)
	d.run("mkfs.ext4", "-q", image)
	d.mount(image, d.dir)
	return d
}

// cut copies the disk as a power cut at this instant would leave it.
func (d *drive) cut(name string) error {
	from, err := os.Open(filepath.Join(d.images, "disk"))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.Create(filepath.Join(d.images, name))
	if err != nil {
		return err
	}
	defer to.Close()
	return unix.IoctlFileClone(int(to.Fd()), int(from.Fd()))
}

// insert mounts a copy where the disk was, which is no longer in use.
func (d *drive) insert(name string) {
	d.t.Helper()
	d.unmount(d.dir)
	d.run("mount", "-o", "loop", filepath.Join(d.images, name), d.dir)
}

func (d *drive) file(path string, size int64) {
	d.t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Truncate(size << 20)
		_ = f.Close()
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// mount mounts an image until the test's end.
func (d *drive) mount(image, dir string) {
	d.t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		d.t.Fatal(err)
	}
	d.run("mount", "-o", "loop", image, dir)
	d.t.Cleanup(func() { d.unmount(dir) })
}

// releaseTime bounds how long a loop device keeps its file after an unmount: until all that was written is on the
// disk, which other tests write to as well.
const releaseTime = 2 * time.Minute

// unmount waits until what used the file system is taken apart.
func (d *drive) unmount(dir string) {
	d.t.Helper()
	limit := time.Now().Add(releaseTime)
	for {
		err := unix.Unmount(dir, 0)
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			d.t.Errorf("unmount %s: %v", dir, err)
			_ = unix.Unmount(dir, unix.MNT_DETACH)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (d *drive) run(name string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
