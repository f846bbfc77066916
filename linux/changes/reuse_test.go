// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package changes_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sandpit.dev/internal/skiptest"
	"sandpit.dev/linux/changes"
)

// An inode number that was a removed directory's is soon another file's, and in
// the moment in which it becomes that the kernel says that it has no memory. That
// a directory is gone is an answer all the same, and a whole one.
func TestADirectoryIsGoneWhileItsInodeNumberIsGivenAnew(t *testing.T) {
	skiptest.WithoutRoot(t, "it mounts")
	if !namesTheRemoved(t) {
		t.Skip("the kernel does not say which directory was removed (Linux 6.13)")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("mkfs.ext4 is not installed")
	}
	base := t.TempDir()
	image, mnt := base+"/image", base+"/mnt"
	must(t, os.Mkdir(mnt, 0o755))
	must(t, os.WriteFile(image, nil, 0o644))
	must(t, os.Truncate(image, 8<<20))
	// The fewer numbers there are, the sooner each is given anew.
	for _, args := range [][]string{{mkfs, "-q", "-N", "64", "-O", "^has_journal", image}, {"mount", "-o", "loop", image, mnt}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("cannot make an ext4: %v\n%s", err, out)
		}
	}
	defer unix.Unmount(mnt, unix.MNT_DETACH)
	o := newOverlay(t, mnt, nil)
	defer o.mount.Close()
	src, err := newGroup(t, changes.Options{}).Add(o.mount, []string{o.dir + "/lower"})
	must(t, err)
	defer src.Close()

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for i := range 3 {
		name := fmt.Sprintf("%s/other%d", mnt, i)
		wg.Go(func() {
			for ctx.Err() == nil {
				os.Mkdir(name, 0o755)
				os.Remove(name)
			}
		})
	}
	s := steps{t, o.ws}
	for range 40 {
		want := []string{"deleted d"}
		s.mkdir("d")
		for i := range 10 {
			dir := fmt.Sprintf("d/%d", i)
			s.mkdir(dir)
			s.mkdir(dir + "/in")
			want = append(want, "deleted "+dir, "deleted "+dir+"/in")
		}
		tr := track(t, src)
		s.rmAll("d")
		if diff := cmp.Diff(stop(t, tr), want); diff != "" {
			t.Errorf("got - want +\n%s", diff)
		}
		if t.Failed() {
			return
		}
	}
}
