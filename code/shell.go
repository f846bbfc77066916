// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
)

// Bounds of shells.
const (
	MaxShells     = 64 // of a sandbox
	MaxShellName  = 64 // characters
	MaxShellStdin = kernel.MaxStdin

	shellLog       = 8 << 20  // bytes of each stream that wait for a slow follower at least
	maxRecent      = 32       // commands that a shell remembers
	maxRecentBytes = 16 << 20 // of their output, beside the last command's
)

// ShellRequest is a shell that is to be made.
type ShellRequest struct {
	Name string // printable characters but "/", and neither "." nor ".."; empty: one is made up
	Cwd  string // relative to the workspace; empty: the workspace, or root's home
	User string // "sandbox" or "root"; empty: sandbox
	Env  map[string]string
}

// ShellState is what a command's result tells of its shell.
type ShellState struct {
	Name string
	ID   string // of its context, in events
	// Restarted is why what the commands before had left behind is gone: their shell had
	// ended, and this command began another. Empty: it is not.
	Restarted string
	Ended     bool // the command took the shell with it
}

// ShellResult is what became of a command in a shell.
type ShellResult struct {
	engine.ExecResult
	Shell ShellState
}

// CreateShell makes a shell. A name that is taken is fault.Exists, more than MaxShells
// are fault.Exhausted, an image without bash is fault.Unsupported.
func (s *Service) CreateShell(ctx context.Context, c access.Caller, ref string, r ShellRequest) (Context, error) {
	c = c.Inside()
	if err := c.Require(access.SandboxesWrite); err != nil {
		return Context{}, err
	}
	var k check.Fields
	if r.Name == "" {
		r.Name = sandbox.NewProcessID()
	}
	want, err := s.checkShell(&k, r)
	if err != nil {
		return Context{}, err
	}
	if err := k.Err(); err != nil {
		return Context{}, err
	}
	return s.makeContext(ctx, c, ref, want, useShell)
}

// checkShell checks what a shell is to be.
func (s *Service) checkShell(k *check.Fields, r ShellRequest) (sandbox.Context, error) {
	checkShellName(k, r.Name)
	want, _, err := s.checkContext(k, ContextRequest{Language: string(kernel.Bash), Cwd: r.Cwd, User: r.User, Env: r.Env}, 0)
	want.Name = r.Name
	return want, err
}

func checkShellName(k *check.Fields, name string) {
	if !validShellName(name) {
		k.Bad("name", "%q is not a valid shell name: 1 to %d printable characters without /, and neither . nor .., which paths do not keep",
			sandbox.Clip(name, 80), MaxShellName)
	}
}

func validShellName(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > MaxShellName*utf8.UTFMax || utf8.RuneCountInString(name) > MaxShellName {
		return false
	}
	for _, c := range name {
		if c == '/' || c == utf8.RuneError || !unicode.IsPrint(c) {
			return false
		}
	}
	return true
}

// shellLocked returns the shell of a name, or nil.
func (all *contexts) shellLocked(name string) *codeContext {
	for _, cc := range all.all {
		if cc.record().Name == name {
			return cc
		}
	}
	return nil
}

// Shells returns a sandbox's shells, oldest first; of one that is down, too.
func (s *Service) Shells(ctx context.Context, c access.Caller, ref string) ([]Context, error) {
	all, leave, err := s.visit(ctx, c, access.SandboxesRead, ref)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []Context
	for _, cc := range all.list() {
		if one := cc.info(); one.Name != "" {
			out = append(out, shellInfo(one))
		}
	}
	return out, nil
}

// Shell returns one.
func (s *Service) Shell(ctx context.Context, c access.Caller, ref, name string) (Context, error) {
	cc, err := s.findShell(ctx, c, access.SandboxesRead, ref, name)
	if err != nil {
		return Context{}, err
	}
	return shellInfo(cc.info()), nil
}

// DeleteShell ends a shell and all that was started in it, the command that runs
// included.
func (s *Service) DeleteShell(ctx context.Context, c access.Caller, ref, name string) error {
	cc, err := s.findShell(ctx, c, access.SandboxesWrite, ref, name)
	if err != nil {
		return err
	}
	return s.DeleteContext(ctx, c, ref, cc.record().ID)
}

// InterruptShell interrupts the command that runs in a shell, as Ctrl-C does; what it
// has left behind stays. Without one it is fault.State.
func (s *Service) InterruptShell(ctx context.Context, c access.Caller, ref, name string) error {
	cc, err := s.findShell(ctx, c, access.SandboxesWrite, ref, name)
	if err != nil {
		return err
	}
	err = s.InterruptContext(ctx, c, ref, cc.record().ID)
	if fault.Is(err, fault.State) {
		return fault.New(fault.State, "no command is running in the shell %q", name)
	}
	return err
}

func (s *Service) findShell(ctx context.Context, c access.Caller, scope access.Scope, ref, name string) (*codeContext, error) {
	all, leave, err := s.visit(ctx, c, scope, ref)
	if err != nil {
		return nil, err
	}
	defer leave()
	all.mu.Lock()
	defer all.mu.Unlock()
	if cc := all.shellLocked(name); name != "" && cc != nil {
		return cc, nil
	}
	return nil, noShell(name)
}

func noShell(name string) *fault.Error {
	return fault.New(fault.NotFound, "there is no shell %q in this sandbox", sandbox.Clip(name, 40)).
		WithRemedy("list its shells, or run a command in this one, which makes it")
}

// shellInfo says what is said of a kernel in the words of shells.
func shellInfo(c Context) Context {
	c.Ended = ofShell(c.Ended)
	return c
}

func ofShell(why string) string {
	return strings.NewReplacer("its sandbox, or its kernel,", "its sandbox, or its bash,", "its kernel", "its bash").Replace(why)
}
