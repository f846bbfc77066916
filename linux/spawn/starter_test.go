// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// startBy starts a process 1 and waits for it.
func startBy(s *Starter, p Process) (pid int, err error) {
	b, err := s.Begin(context.Background(), p)
	if err != nil {
		return 0, err
	}
	return b.Wait()
}

// starter gives one that is closed with the test.
func starter(t *testing.T, m Method) *Starter {
	t.Helper()
	s, err := NewStarter(1, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// What all sandboxes of a server have open is thousands of descriptors: to copy them into
// the next one's process 1, and to close them there, took longer than all else of its start.
func TestTheServersDescriptorsAreNotCopied(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		var many []*os.File
		defer func() {
			for _, f := range many {
				_ = f.Close()
			}
		}()
		s := starter(t, m) // while the table is small
		for range 2000 {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			many = append(many, f)
		}
		ns, err := NewUserNS(700_200_000, m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ns.Close() }()
		program, err := os.Open("/bin/sleep")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = program.Close() }()
		pid, err := startBy(s, Process{Program: program, Args: []string{"sleep", "100"}, Files: many[:3], UserNS: ns, NetNS: netOf(t, ns, m)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}()
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "\nFDSize:")
		line, _, _ := strings.Cut(rest, "\n")
		// The kernel's table never shrinks: its size tells what was copied.
		if size, err := strconv.Atoi(strings.TrimSpace(line)); err != nil || size >= 2000 {
			t.Errorf("the table has room for %d descriptors, %v", size, err)
		}
	})
}

func TestWhatAProcessGotIsNotKept(t *testing.T) {
	eachMethod(t, func(t *testing.T, m Method) {
		needRoot(t)
		s := starter(t, m)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = r.Close() }()
		ns, err := NewUserNS(700_300_000, m)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = ns.Close() }()
		program, err := os.Open("/bin/true")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = program.Close() }()
		pid, err := startBy(s, Process{Program: program, Args: []string{"true"}, Files: []*os.File{w, w, w}, UserNS: ns, NetNS: netOf(t, ns, m)})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d, %v: somebody still has the other end", n, err)
		}
	})
}
