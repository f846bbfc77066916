// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/url"
	"strconv"
	"time"

	v1 "sandpit.dev/api/v1"
)

// Shell is a named bash of a sandbox: a command in it finds the state that the one before left.
// Its methods are safe for concurrent use; its commands run one after another.
type Shell struct {
	c    *Client
	ref  string
	name string
}

// OpenShell returns the shell of a name. It makes no request: the shell's first command creates
// it.
func (c *Client) OpenShell(ref, name string) *Shell { return &Shell{c: c, ref: ref, name: name} }

// CreateShell makes a shell. A name that is taken is fault.Exists.
func (c *Client) CreateShell(ctx context.Context, ref string, r v1.CreateShell) (*Shell, error) {
	var out v1.Shell
	if _, err := c.begin(ctx, request{method: "POST", path: of(ref, "/shells"), body: r}, &out); err != nil {
		return nil, err
	}
	return c.OpenShell(ref, out.Name), nil
}

// Shells returns a sandbox's shells, oldest first.
func (c *Client) Shells(ctx context.Context, ref string) ([]v1.Shell, error) {
	var out v1.ShellList
	if _, err := c.call(ctx, request{method: "GET", path: of(ref, "/shells")}, &out); err != nil {
		return nil, err
	}
	return out.Items, nil
}

// Name is the shell's name.
func (s *Shell) Name() string { return s.name }

func (s *Shell) path(rest string) string { return of(s.ref, "/shells/"+seg(s.name)+rest) }

// Get returns the shell's record.
func (s *Shell) Get(ctx context.Context) (*v1.Shell, error) {
	out := new(v1.Shell)
	if _, err := s.c.call(ctx, request{method: "GET", path: s.path("")}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Exec runs a command in the shell, as [Client.Exec] does without one.
func (s *Shell) Exec(ctx context.Context, r v1.Exec) (*v1.ShellExecResult, error) {
	out := new(v1.ShellExecResult)
	if _, err := s.c.begin(ctx, request{method: "POST", path: s.path("/exec"), body: r}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ExecStarted runs a command in the shell and passes its output on as it comes, as
// [Client.ExecStarted] does without one. started gets the command's id.
func (s *Shell) ExecStarted(ctx context.Context, r v1.Exec, started func(id string), fn func(Frame) error) (*v1.ShellExecOutcome, error) {
	out := new(v1.ShellExecOutcome)
	if _, err := s.c.streamCommand(ctx, s.path("/exec"), r, func(s v1.ExecStarted) { started(s.ProcessID) }, fn, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Command returns the result of one of the shell's last commands. It waits for the command at
// most as long as wait, and no longer than one request may.
func (s *Shell) Command(ctx context.Context, processID string, wait time.Duration) (*v1.ShellExecResult, error) {
	out := new(v1.ShellExecResult)
	q := url.Values{"wait_seconds": {strconv.FormatFloat(min(wait, waitEach).Seconds(), 'f', -1, 64)}}
	if _, err := s.c.call(ctx, request{method: "GET", path: s.path("/commands/" + seg(processID)), query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Interrupt interrupts the command that runs, as Ctrl-C does. Without one it is fault.State.
func (s *Shell) Interrupt(ctx context.Context) error {
	_, err := s.c.call(ctx, request{method: "POST", path: s.path("/interrupt")}, nil)
	return err
}

// Delete ends the shell and all that was started in it.
func (s *Shell) Delete(ctx context.Context) error {
	_, err := s.c.call(ctx, request{method: "DELETE", path: s.path("")}, nil)
	return err
}
