// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// screen is what a program wrote to a terminal, and can be waited for.
type screen struct {
	mu   sync.Mutex
	news chan struct{} // has an item when there is more
	text bytes.Buffer
}

func watch(r io.Reader) *screen {
	s := &screen{news: make(chan struct{}, 1)}
	go func() { // ends with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := r.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			select {
			case s.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return s
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits until the screen has shown text.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.news:
		case <-limit.C:
			t.Fatalf("the screen never showed %q but:\n%s", text, s)
		}
	}
}

func TestShell(t *testing.T) {
	images := needRoot(t)
	dir := t.TempDir()
	s := &server{dir: dir, env: append(environment(dir, images), "TERM=xterm")}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.cleanUp(); err != nil {
			t.Error(err)
		}
	})
	if out, err := s.command("create", "--name", "box").CombinedOutput(); err != nil {
		t.Fatalf("create: %v\n%s", err, out)
	}
	// open starts a command at a terminal of 100 columns and 30 rows.
	open := func(t *testing.T, args ...string) (*exec.Cmd, *os.File, *os.File, *screen) {
		t.Helper()
		ours, theirs, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
		if err := pty.Setsize(ours, &pty.Winsize{Cols: 100, Rows: 30}); err != nil {
			t.Fatal(err)
		}
		cmd := s.command(args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, ours, theirs, watch(ours)
	}
	typed := func(t *testing.T, f *os.File, text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("TypesResizesInterruptsAndPassesTheStatusOn", func(t *testing.T) {
		cmd, ours, theirs, sc := open(t, "shell", "box")
		before, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		typed(t, ours, "echo one-$((20+3)); stty size\n")
		sc.await(t, "one-23")
		sc.await(t, "30 100")
		if err := pty.Setsize(ours, &pty.Winsize{Cols: 77, Rows: 22}); err != nil {
			t.Fatal(err)
		}
		// The new size travels beside what is typed: ask until it is there.
		typed(t, ours, "until [ \"$(stty size)\" = '22 77' ]; do :; done; echo two-$((40+4))\n")
		sc.await(t, "two-44")
		// The one that speaks is the one that is interrupted.
		typed(t, ours, "sh -c 'echo three-$((3*11)); exec sleep 1000'\n")
		sc.await(t, "three-33")
		typed(t, ours, "\x03")
		typed(t, ours, "echo four-$?; exit 42\n")
		sc.await(t, "four-130")
		got, err := code(cmd.Wait())
		if err != nil {
			t.Fatal(err)
		}
		if got != 42 {
			t.Errorf("exit status %d, want 42; the screen was:\n%s", got, sc)
		}
		after, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if *after != *before {
			t.Errorf("the terminal is not as it was:\n%+v\nwant\n%+v", after, before)
		}
	})

	t.Run("RunsOneCommandAsRoot", func(t *testing.T) {
		cmd, _, _, sc := open(t, "exec", "-it", "-u", "root", "-e", "WORD=two words", "box", "sh", "-c", `id -u; echo "<$WORD>"; tty; exit 5`)
		sc.await(t, "<two words>")
		sc.await(t, "/dev/pts/")
		got, err := code(cmd.Wait())
		if err != nil {
			t.Fatal(err)
		}
		if got != 5 {
			t.Errorf("exit status %d, want 5; the screen was:\n%s", got, sc)
		}
	})

	t.Run("EndsWithASignalAndRestoresTheTerminal", func(t *testing.T) {
		cmd, ours, theirs, sc := open(t, "shell", "box")
		before, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		typed(t, ours, "echo up-$((1+1))\n")
		sc.await(t, "up-2")
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		got, err := code(cmd.Wait())
		if err != nil {
			t.Fatal(err)
		}
		if got != 128+int(syscall.SIGTERM) {
			t.Errorf("exit status %d, want %d", got, 128+int(syscall.SIGTERM))
		}
		after, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if *after != *before {
			t.Errorf("the terminal is not as it was:\n%+v\nwant\n%+v", after, before)
		}
	})

	t.Run("WithoutATerminalSaysSo", func(t *testing.T) {
		cmd := s.command("shell", "box")
		out, err := cmd.CombinedOutput()
		got, err := code(err)
		if err != nil {
			t.Fatal(err)
		}
		if want := "there is no terminal here"; got != 125 || !strings.Contains(string(out), want) {
			t.Errorf("exit status %d and %q, want 125 and %q", got, out, want)
		}
	})

	if _, err := os.Stat(filepath.Join(dir, "run", "server.json")); err != nil {
		t.Error(err)
	}
}
