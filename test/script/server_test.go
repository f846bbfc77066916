// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// server is a `sandpit serve` of one script's.
type server struct {
	dir string
	env []string
	cmd *exec.Cmd // nil: none runs
}

type serverKey struct{}

// startBound is how long a server may take to be ready: far more than it does.
const startBound = 60 * time.Second

// start starts it and waits for its word that it is ready.
func (s *server) start() error {
	if s.cmd != nil {
		return errors.New("the server runs already")
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command("serve")
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "sandpit is ready at http://") {
			err = fmt.Errorf("it said %q", line)
		}
		ready <- err
	}()
	limit := time.NewTimer(startBound)
	defer limit.Stop()
	select {
	case err = <-ready:
	case <-limit.C:
		err = fmt.Errorf("it is not ready after %s", startBound)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("start the server: %w\n%s", err, s.log())
	}
	s.cmd = cmd
	return nil
}

func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "sandpit"), args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// end sends a signal and waits until the process is gone.
func (s *server) end(sig syscall.Signal) error {
	if s.cmd == nil {
		return errors.New("no server runs")
	}
	cmd := s.cmd
	s.cmd = nil
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	err := cmd.Wait()
	if sig == syscall.SIGKILL {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the server ended with %w\n%s", err, s.log())
	}
	return nil
}

func (s *server) log() string {
	var all []byte
	for _, name := range []string{"serve.log", "data/server.log"} {
		b, err := os.ReadFile(filepath.Join(s.dir, name))
		if err == nil {
			all = append(all, b...)
		}
	}
	return string(all[max(0, len(all)-8<<10):])
}

// cleanUp deletes the sandboxes of a script, which outlive its server, and ends
// the server.
func (s *server) cleanUp() error {
	if _, err := os.Stat(filepath.Join(s.dir, "data", "sandpit.db")); err != nil {
		return nil // there never was one
	}
	if s.cmd == nil { // a script may have one of its own by `sandpit up`
		if out, err := s.command("up").CombinedOutput(); err != nil {
			// The script may have broken the note of where the server is.
			_ = os.Remove(filepath.Join(s.dir, "run", "server.json"))
			if again, err := s.command("up").CombinedOutput(); err != nil {
				return fmt.Errorf("up: %w\n%s%s%s", err, out, again, s.log())
			}
		}
	}
	out, err := s.command("ls", "-a", "-q").Output()
	if err != nil {
		return fmt.Errorf("ls: %w", err)
	}
	if ids := strings.Fields(string(bytes.TrimSpace(out))); len(ids) > 0 {
		if out, err := s.command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("rm: %w\n%s", err, out)
		}
	}
	if s.cmd != nil {
		return s.end(syscall.SIGTERM)
	}
	if out, err := s.command("down").CombinedOutput(); err != nil {
		return fmt.Errorf("down: %w\n%s", err, out)
	}
	return nil
}
