// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// Machine is what a node runs on: namespaces, control groups and a directory.
type Machine struct {
	PID int // of process 1 of its namespaces

	dir     string
	group   string
	kit     programs.Kit
	thread  *programs.Private // nil: another process started it
	process *os.Process
	ended   chan error
}

// begin starts process 1 in new namespaces: the script, with arguments behind the directory and the group.
func (m *Machine) begin(ctx context.Context, args ...string) (err error) {
	file := filepath.Join(m.dir, "node.sh")
	if err := errors.Join(writePause(m.dir, m.kit), os.WriteFile(file, script, 0o600)); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(m.dir, "node.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if m.thread, err = programs.NewPrivate(); err != nil {
		return err
	}
	cmd := m.kit.Command(context.WithoutCancel(ctx), "bash", append([]string{file, m.dir, m.group}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, m.dir
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // the thread ends with us, however we end
	err = m.thread.Do(func() error {
		if err := programs.LetGo(m.dir); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		m.thread.Close()
		return err
	}
	m.process, m.PID, m.ended = cmd.Process, cmd.Process.Pid, make(chan error, 1)
	go func() { m.ended <- cmd.Wait() }()
	return nil
}

// wait waits until the node is ready.
func (m *Machine) wait(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		if _, err := os.Lstat(filepath.Join(m.dir, "ready")); err == nil {
			return nil
		}
		select {
		case err := <-m.ended:
			m.ended <- err
			return fmt.Errorf("the node ended: %s", m.lastWords())
		case <-limit.Done():
			return fmt.Errorf("the node is not ready after %v: %w: %s", readyTimeout, limit.Err(), m.lastWords())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lastWords returns the last KiB of each component's log.
func (m *Machine) lastWords() string {
	files, _ := filepath.Glob(filepath.Join(m.dir, "log", "*")) // the pattern is valid
	var out strings.Builder
	for _, path := range append(files, filepath.Join(m.dir, "node.log")) {
		b, err := os.ReadFile(path)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(&out, "\n%s: %s", filepath.Base(path), bytes.TrimSpace(b[max(0, len(b)-1024):]))
	}
	return out.String()
}

// Command returns a command that runs on the node, as root of the machine.
func (m *Machine) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return m.kit.Command(ctx, "nsenter", append([]string{"--target", strconv.Itoa(m.PID), "--mount", "--net", "--pid", "--cgroup", "--uts", "--ipc", "--", program}, args...)...)
}

// end ends all that runs on the machine at once, as a loss of power does, and removes what is outside of its directory.
func (m *Machine) end() error {
	_ = m.process.Kill() // it may have ended
	err := <-m.ended     // and with it its whole namespace
	m.ended <- err
	if m.thread != nil {
		m.thread.Close()
		m.thread = nil
	}
	return programs.SweepGroup(m.group)
}
