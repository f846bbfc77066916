// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package servertest runs the real server for tests that are its clients.
package servertest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/skiptest"
)

const startBound = time.Minute // of a server to be ready: far more than it takes

// Server is a server with a directory of its own. It ends with the test that it was made for, and its sandboxes with it.
type Server struct {
	Address string   // http://HOST:PORT, of the last start
	Token   string   // of its administrator
	Env     []string // of its commands

	t       testing.TB
	program string
	dir     string
	cmd     *exec.Cmd
}

// Need skips a test where no server can be.
func Need(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what starts a server, and what that may have to fetch")
	}
	skiptest.WithoutRoot(t, "the native runtime does")
}

// Start returns a server that runs, with the image python.
func Start(t testing.TB, program string) *Server {
	t.Helper()
	Need(t)
	imagetest.Python(t)
	s := New(t, program, imagetest.Dir(t))
	s.Start()
	return s
}

// New returns a server that is not started yet, by its program, with a directory of images.
func New(t testing.TB, program, images string) *Server {
	t.Helper()
	Sources(t)
	s := &Server{t: t, program: program, dir: t.TempDir()}
	s.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SANDPIT_RUN_DIR=" + filepath.Join(s.dir, "run"), "SANDPIT_DATA=" + filepath.Join(s.dir, "data"),
		"SANDPIT_IMAGES=" + images, "SANDPIT_LISTEN=127.0.0.1:0",
	}
	return s
}

// Start starts it, for the first time or again after Kill.
func (s *Server) Start() {
	s.t.Helper()
	first := s.cmd == nil
	s.cmd = s.Command("serve")
	log, err := os.OpenFile(s.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	s.cmd.Stderr = log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	if first {
		s.t.Cleanup(s.stop)
		s.t.Cleanup(s.clear)
	}
	late := time.AfterFunc(startBound, func() { _ = s.cmd.Process.Kill() })
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	late.Stop()
	rest, ok := strings.CutPrefix(line, "sandpit is ready at ")
	s.Address, _, _ = strings.Cut(rest, ";")
	token, terr := os.ReadFile(filepath.Join(s.dir, "data/admin-token"))
	if err != nil || !ok || terr != nil {
		s.t.Fatalf("the server said %q; %v, %v\n%s", line, err, terr, s.Log())
	}
	s.Token = strings.TrimSpace(string(token))
	go func() { _, _ = io.Copy(io.Discard, r) }()
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "server.log") }

// Log returns what it has said, in all its starts.
func (s *Server) Log() string {
	s.t.Helper()
	b, err := os.ReadFile(s.logFile())
	if err != nil {
		s.t.Error(err)
	}
	return string(b)
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-4<<10):] }

// Kill ends it as a power cut would: Start has it go on.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
}

func (s *Server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil || s.t.Failed() {
		s.t.Errorf("the server ended with %v; it said:\n%s", err, tail(s.Log()))
	}
}

// clear deletes all sandboxes, which outlive their server.
func (s *Server) clear() {
	out, err := s.Command("ls", "-a", "-q").Output()
	if err != nil {
		s.t.Errorf("list the sandboxes: %v", err)
	}
	if ids := strings.Fields(string(out)); len(ids) > 0 {
		if out, err := s.Command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
			s.t.Errorf("delete the sandboxes: %v\n%s", err, out)
		}
	}
}

// Command returns a command of the server's administrator.
func (s *Server) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Env = s.Env
	return cmd
}

// PID returns the id of its process, of the last start.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Run runs a command of the server's administrator, and returns what it prints.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	out, err := s.Command(args...).Output()
	if err != nil {
		s.t.Fatalf("sandpit %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
