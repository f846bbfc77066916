// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package servertest runs the real server for tests that are its clients.
package servertest

import (
	"bufio"
	"bytes"
	"fmt"
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

// Build builds the server's program into a directory, and returns its path. It is for TestMain of a package two levels below
// the module.
func Build(dir string) (program string, err error) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-test", "-o", dir+"/", "./cmd/sandpit")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build sandpit: %w\n%s", err, out)
	}
	return filepath.Join(dir, "sandpit"), nil
}

// Server is a server with a directory of its own. It ends with the test that it was started for, and its sandboxes with it.
type Server struct {
	Address string // http://HOST:PORT
	Token   string // of its administrator
	Env     []string
	program string
	t       testing.TB
}

// Start starts a server by its program. The image python is built if it has to be.
func Start(t testing.TB, program string) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what starts a server")
	}
	skiptest.WithoutRoot(t, "the native runtime does")
	imagetest.Python(t)
	dir := t.TempDir()
	s := &Server{program: program, t: t, Env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SANDPIT_RUN_DIR=" + filepath.Join(dir, "run"), "SANDPIT_DATA=" + filepath.Join(dir, "data"),
		"SANDPIT_IMAGES=" + imagetest.Dir(t), "SANDPIT_LISTEN=127.0.0.1:0",
	}}
	cmd := exec.Command(program, "serve")
	cmd.Env = s.Env
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the server ended with %v; it said:\n%s", err, log.Bytes()[max(0, log.Len()-4<<10):])
		}
	})
	t.Cleanup(s.clear)
	late := time.AfterFunc(startBound, func() { _ = cmd.Process.Kill() })
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	late.Stop()
	rest, ok := strings.CutPrefix(line, "sandpit is ready at ")
	s.Address, _, _ = strings.Cut(rest, ";")
	token, terr := os.ReadFile(filepath.Join(dir, "data/admin-token"))
	if err != nil || !ok || terr != nil {
		t.Fatalf("the server said %q; %v, %v\n%s", line, err, terr, log.Bytes())
	}
	s.Token = strings.TrimSpace(string(token))
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return s
}

// clear deletes all sandboxes, which outlive their server.
func (s *Server) clear() {
	out, err := s.command("ls", "-a", "-q").Output()
	if err != nil {
		s.t.Errorf("list the sandboxes: %v", err)
	}
	if ids := strings.Fields(string(out)); len(ids) > 0 {
		if out, err := s.command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
			s.t.Errorf("delete the sandboxes: %v\n%s", err, out)
		}
	}
}

func (s *Server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.program, args...)
	cmd.Env = s.Env
	return cmd
}

// Run runs a command of the server's administrator, and returns what it prints.
func (s *Server) Run(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if err != nil {
		s.t.Fatalf("sandpit %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
