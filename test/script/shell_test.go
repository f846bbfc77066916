// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	if !s.shows(text, time.Minute) {
		t.Fatalf("the screen never showed %q but:\n%s", text, s)
	}
}

// shows reports whether the screen shows text within the time.
func (s *screen) shows(text string, within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.news:
		case <-limit.C:
			return false
		}
	}
	return true
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
	running := func(t *testing.T) []string {
		t.Helper()
		out, err := s.command("ps", "-q", "box").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	// hungUp waits for the end of a shell whose client has ended: that takes a moment more.
	hungUp := func(t *testing.T) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); len(running(t)) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("still running: %q", running(t))
			}
		}
	}

	t.Run("TypesResizesInterruptsAndPassesTheStatusOn", func(t *testing.T) {
		cmd, ours, theirs, sc := openTerminal(t, s, "shell", "box")
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

	t.Run("RunsOneCommandInANewSandbox", func(t *testing.T) {
		// What is typed is the command's from the first key on, and no end of input is waited for.
		cmd, ours, _, sc := openTerminal(t, s, "run", "-it", "sh", "-c", `echo up; read -r x; echo "<$x>"; exit 6`)
		sc.await(t, "up")
		typed(t, ours, "two words\n")
		sc.await(t, "<two words>")
		got, err := code(cmd.Wait())
		if err != nil {
			t.Fatal(err)
		}
		if got != 6 {
			t.Errorf("exit status %d, want 6; the screen was:\n%s", got, sc)
		}
	})

	t.Run("RunsOneCommandAsRoot", func(t *testing.T) {
		cmd, _, _, sc := openTerminal(t, s, "exec", "-it", "-u", "root", "-e", "WORD=two words", "box", "sh", "-c", `id -u; echo "<$WORD>"; echo "<$PATH:$HOME:$PWD>"; tty; exit 5`)
		sc.await(t, "<two words>")
		sc.await(t, "</dev/sandpit/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/root:/root>")
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
		cmd, ours, theirs, sc := openTerminal(t, s, "shell", "box")
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
		hungUp(t)
		after, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if *after != *before {
			t.Errorf("the terminal is not as it was:\n%+v\nwant\n%+v", after, before)
		}
	})

	t.Run("ASignalHangsUp", func(t *testing.T) {
		cmd, ours, _, sc := openTerminal(t, s, "shell", "box")
		typed(t, ours, "echo up-$((1+1))\n")
		sc.await(t, "up-2")
		id := running(t)
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		exits(t, cmd, sc, 128+int(syscall.SIGHUP))
		if len(id) != 1 {
			t.Fatalf("running: %q", id)
		}
		if got, err := code(s.command("logs", "-f", "box", id[0]).Run()); err != nil || got != 0 { // until its end
			t.Errorf("logs: %d, %v", got, err)
		}
	})

	t.Run("IsLeftAndJoinedByMany", func(t *testing.T) {
		cmd, ours, theirs, sc := openTerminal(t, s, "shell", "box")
		before, err := term.GetState(int(theirs.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		typed(t, ours, "word=left; echo set-$((1+1))\n")
		sc.await(t, "set-2")
		typed(t, ours, "\x10\x11")
		exits(t, cmd, sc, 0)
		sc.await(t, "detached")
		if after, err := term.GetState(int(theirs.Fd())); err != nil || *after != *before {
			t.Errorf("the terminal is not as it was: %v", err)
		}
		id := running(t)
		if len(id) != 1 {
			t.Fatalf("running: %q", id)
		}
		one, typing, _, first := openTerminal(t, s, "shell", "--attach", id[0], "box")
		first.await(t, "set-2") // what was shown before
		two, _, _, second := openTerminal(t, s, "shell", "--detach-keys", "ctrl-a,d", "--attach", id[0], "box")
		second.await(t, "set-2")
		typed(t, typing, "echo $word-and-joined; stty size\n")
		for _, sc := range []*screen{first, second} {
			sc.await(t, "left-and-joined")
			sc.await(t, "30 100")
		}
		typed(t, typing, "exit 9\n")
		exits(t, one, first, 9)
		exits(t, two, second, 9)
	})

	t.Run("OutlivesTheServer", func(t *testing.T) {
		note, err := os.ReadFile(filepath.Join(dir, "run", "server.json"))
		if err != nil {
			t.Fatal(err)
		}
		listened := regexp.MustCompile(`127\.0\.0\.1:[0-9]+`).FindString(string(note))
		cmd, ours, _, sc := openTerminal(t, s, "shell", "box")
		typed(t, ours, "word=kept; echo before-$((1+1))\n")
		sc.await(t, "before-2")
		if err := s.end(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		typed(t, ours, "echo $word-$((2+2))\n") // while nobody answers
		s.env = append(s.env, "SANDPIT_LISTEN="+listened)
		if err := s.start(); err != nil {
			t.Fatal(err)
		}
		// A key that was on its way when the connection broke is dropped, rather than
		// typed twice: then a person types it again.
		for range 3 {
			if sc.shows("kept-4", 15*time.Second) {
				break
			}
			typed(t, ours, "\x15echo $word-$((2+2))\n")
		}
		sc.await(t, "kept-4")
		typed(t, ours, "exit 6\n")
		exits(t, cmd, sc, 6)
	})

	t.Run("WithoutATerminalIsAShellThatReads", func(t *testing.T) { testShellThatReads(t, s) })

	t.Run("ACommandWithoutATerminalSaysSo", func(t *testing.T) { testNoTerminal(t, s) })

	if _, err := os.Stat(filepath.Join(dir, "run", "server.json")); err != nil {
		t.Error(err)
	}
}

// testShellThatReads tests a shell whose input is no terminal.
func testShellThatReads(t *testing.T, s *server) {
	cmd := s.command("shell", "box")
	cmd.Stdin = strings.NewReader("cd /tmp\ncat <<EOF\n$PWD-$((40+2))\nEOF\ntty; echo oops >&2\nexit 7\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	got, err := code(cmd.Run())
	if err != nil || got != 7 || out.String() != "/tmp-42\nnot a tty\n" || errs.String() != "oops\n" {
		t.Errorf("exit status %d, %v, %q and %q", got, err, out.String(), errs.String())
	}
}

// testNoTerminal tests commands that ask for a terminal where there is none.
func testNoTerminal(t *testing.T, s *server) {
	out, err := s.command("exec", "-t", "box", "true").CombinedOutput()
	got, err := code(err)
	if err != nil {
		t.Fatal(err)
	}
	if want := "there is no terminal here"; got != 125 || !strings.Contains(string(out), want) {
		t.Errorf("exit status %d and %q, want 125 and %q", got, out, want)
	}
	if out, err := s.command("shell", "--detach-keys", "ctrl-ä", "box").CombinedOutput(); !strings.Contains(string(out), "is not a key") {
		t.Errorf("%v %s", err, out)
	}
}

// openTerminal starts a command at a terminal of 100 columns and 30 rows.
func openTerminal(t *testing.T, s *server, args ...string) (*exec.Cmd, *os.File, *os.File, *screen) {
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

// typed types a text.
func typed(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// exits waits for the end of a command, which has to have this status.
func exits(t *testing.T, cmd *exec.Cmd, sc *screen, want int) {
	t.Helper()
	if got, err := code(cmd.Wait()); err != nil || got != want {
		t.Errorf("exit status %d, %v, want %d; the screen was:\n%s", got, err, want, sc)
	}
}
