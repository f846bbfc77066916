// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	_ "embed" // of the script
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

// Options configure a cluster.
type Options struct {
	Dir      string // holds all that it keeps; it exists, and is not below /run or /opt
	Group    string // name of the control groups below which its own are; nobody else's
	Programs *programs.Finder
}

// Cluster is one that runs.
type Cluster struct {
	Kubeconfig string // path of an administrator's
	PID        int    // of process 1 of its namespaces

	dir     string
	group   string
	kit     programs.Kit
	thread  *programs.Private
	process *os.Process
	ended   chan error
}

// The node's name, and its address in the cluster's own network.
const (
	Node    = "node1"
	Address = "10.250.0.2"
)

// readyTimeout bounds how long a cluster takes to be usable. On an idle host it takes five seconds.
const readyTimeout = 3 * time.Minute

//go:embed node.sh
var script []byte

// Find finds the programs, or builds them.
func Find(ctx context.Context, p *programs.Finder) (programs.Kit, error) {
	parts, err := FindParts()
	if err != nil {
		return programs.Kit{}, err
	}
	return p.Find(ctx, "kubernetes", parts)
}

// Start starts a cluster, and waits until its node is ready. The caller closes it.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	c := &Cluster{dir: o.Dir, group: o.Group, ended: make(chan error, 1), Kubeconfig: filepath.Join(o.Dir, "pki", "admin.kubeconfig")}
	if c.kit, err = Find(ctx, o.Programs); err != nil {
		return nil, err
	}
	file := filepath.Join(o.Dir, "node.sh")
	if err := errors.Join(certify(filepath.Join(o.Dir, "pki"), Node, Address), configure(o.Dir, filepath.Dir(c.kit.Path("kubernetes"))), writePause(o.Dir, c.kit),
		os.WriteFile(file, script, 0o600)); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(o.Dir, "node.log"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if c.thread, err = programs.NewPrivate(); err != nil {
		return nil, err
	}
	cmd := c.kit.Command(context.WithoutCancel(ctx), "bash", file, o.Dir, o.Group, Node, Address)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.Dir
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // the thread ends with us, however we end
	err = c.thread.Do(func() error {
		if err := programs.LetGo(o.Dir); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		c.thread.Close()
		return nil, err
	}
	c.process, c.PID = cmd.Process, cmd.Process.Pid
	go func() { c.ended <- cmd.Wait() }()
	if err := c.wait(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// wait waits until the node is ready.
func (c *Cluster) wait(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		if _, err := os.Lstat(filepath.Join(c.dir, "ready")); err == nil {
			return nil
		}
		select {
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("the cluster ended: %s", c.lastWords())
		case <-limit.Done():
			return fmt.Errorf("the cluster is not ready after %v: %w: %s", readyTimeout, ctx.Err(), c.lastWords())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lastWords returns the end of what each component said.
func (c *Cluster) lastWords() string {
	files, _ := filepath.Glob(filepath.Join(c.dir, "log", "*")) // the pattern is valid
	var out strings.Builder
	for _, path := range append(files, filepath.Join(c.dir, "node.log")) {
		b, err := os.ReadFile(path)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(&out, "\n%s: %s", filepath.Base(path), bytes.TrimSpace(b[max(0, len(b)-1024):]))
	}
	return out.String()
}

// Command returns a command that runs on the node, as root of the cluster's host.
func (c *Cluster) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	return c.kit.Command(ctx, "nsenter", append([]string{"--target", strconv.Itoa(c.PID), "--mount", "--net", "--pid", "--cgroup", "--uts", "--ipc", "--", program}, args...)...)
}

// Kubectl returns a command of the administrator's.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return c.Command(ctx, c.kit.Path("kubernetes"), append([]string{"kubectl", "--kubeconfig", c.Kubeconfig}, args...)...)
}

// Close ends the cluster as a crash of its host does, and removes what is outside of its directory.
func (c *Cluster) Close() error {
	_ = c.process.Kill() // it may have ended
	<-c.ended            // and with it its whole namespace
	c.thread.Close()
	return programs.SweepGroup(c.group)
}

// Running returns a cluster that another process started, and closes.
func Running(ctx context.Context, dir string, pid int, p *programs.Finder) (*Cluster, error) {
	kit, err := Find(ctx, p)
	return &Cluster{dir: dir, kit: kit, PID: pid, Kubeconfig: filepath.Join(dir, "pki", "admin.kubeconfig")}, err
}
