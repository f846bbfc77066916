// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Files that were uploaded are let go of when they are on the disk, however many came at once,
// and so is the goroutine that waits for them.
func TestSyncerLetsGoOfFiles(t *testing.T) {
	for _, n := range []int{1, syncFiles, 3 * syncFiles} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			var work sync.WaitGroup
			s := New(Options{Go: work.Go, Logger: slog.New(slog.DiscardHandler)})
			dir := t.TempDir()
			var fds []int
			for i := range n {
				path := filepath.Join(dir, strconv.Itoa(i))
				if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
					t.Fatal(err)
				}
				fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					t.Fatal(err)
				}
				if i%5 == 4 { // removed before its turn
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
				fds = append(fds, fd)
			}
			for _, fd := range fds {
				s.syncer.add(fd)
				s.syncer.mu.Lock()
				for _, u := range s.syncer.waiting {
					if len(u.files) > syncFiles {
						t.Errorf("%d files are held, want up to %d", len(u.files), syncFiles)
					}
				}
				s.syncer.mu.Unlock()
			}
			work.Wait()
			for _, fd := range fds {
				if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
					t.Errorf("descriptor %d: %v, want it closed", fd, err)
				}
			}
			s.syncer.now() // with nothing that waits
		})
	}
}
