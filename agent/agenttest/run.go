// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package agenttest is the suite that every agent has to pass, wherever it
// runs. It sees a sandbox only through an agent.Client: commands and files.
package agenttest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Options says what the agent under test can do. What it claims is tested and
// never skipped.
type Options struct {
	// HasRoot: the user "root" is allowed.
	HasRoot bool
	// IsPID1: it is process 1 of a pid namespace of its own.
	IsPID1 bool
	// Reaps: as process 1 it reaps by itself, which may cost it a thread.
	Reaps bool
	// HasGroups: a kill reaches all that a command started, whatever it did.
	HasGroups bool
	// OwnRoot: "/" of the file operations is also "/" of the commands. Else
	// paths in commands have to be relative to the workspace.
	OwnRoot bool
	// Unprivileged: the user "sandbox" is not root, and has no capabilities.
	Unprivileged bool
	// Threads are what it keeps by its configuration, also when it rests; 0: the few that it needs.
	Threads int
	// IPv4Only: the network has no addresses of IPv6, as in containers of Engines.
	IPv4Only bool
}

// Run runs the suite but for the groups in without. open returns a client of a fresh agent with an empty
// workspace, and cleans up with t. The commands used are sh or bash, coreutils,
// setsid and python3.
func Run(t *testing.T, open func(t *testing.T) *agent.Client, o Options, without ...string) {
	groups := []group{
		{"Process", func(t *testing.T, open opener, _ Options) { testProcess(t, open) }},
		{"Held", func(t *testing.T, open opener, _ Options) { testHeld(t, open) }},
		{"Stdin", func(t *testing.T, open opener, _ Options) { testStdin(t, open) }},
		{"Output", func(t *testing.T, open opener, _ Options) { testOutput(t, open) }},
		{"Bounds", testBounds},
		{"Kill", testKill},
		{"Attach", func(t *testing.T, open opener, _ Options) { testAttach(t, open) }},
		{"Rolling", func(t *testing.T, open opener, _ Options) { testRolling(t, open) }},
		{"Lossless", func(t *testing.T, open opener, _ Options) { testLossless(t, open) }},
		{"Wait", func(t *testing.T, open opener, _ Options) { testWait(t, open) }},
		{"Input", func(t *testing.T, open opener, _ Options) { testInput(t, open) }},
		{"Suspend", func(t *testing.T, open opener, _ Options) { testSuspend(t, open) }},
		{"Terminal", func(t *testing.T, open opener, _ Options) { testTerminal(t, open) }},
		{"Masked", func(t *testing.T, open opener, _ Options) { testMasked(t, open) }},
		{"Init", testInit},
		{"Files", testFiles},
		{"Tree", testTree},
		{"Archive", testArchive},
		{"Search", testSearch},
		{"Attributes", testAttributes},
		{"Replace", testReplace},
		{"Outcomes", testOutcomes},
		{"Versions", testVersions},
		{"Ports", testPorts},
		{"Dial", testDial},
		{"Hostile", testHostile},
	}
	for _, name := range without {
		if !slices.ContainsFunc(groups, func(g group) bool { return g.name == name }) {
			t.Fatalf("the suite has no group %s", name)
		}
	}
	for _, g := range groups {
		if !slices.Contains(without, g.name) {
			t.Run(g.name, func(t *testing.T) { g.run(t, open, o) })
		}
	}
}

// opener returns a client of a fresh agent.
type opener = func(t *testing.T) *agent.Client

// group is a part of the suite.
type group struct {
	name string
	run  func(t *testing.T, open opener, o Options)
}

// patience bounds what hangs in a broken agent.
const patience = 60 * time.Second

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// output is what a process wrote, and how it ended.
type output struct {
	stdout, stderr string
	frames         []sandbox.Frame
	sandbox.Result
}

// collect follows p to its end.
func collect(t *testing.T, p *agent.Process) output {
	t.Helper()
	ctx := within(t)
	var out output
	var stdout, stderr bytes.Buffer
	for {
		f, err := p.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("Next: %v", err)
		}
		if f.Stream == sandbox.Stdout {
			stdout.Write(f.Data)
		} else {
			stderr.Write(f.Data)
		}
		f.Data = nil
		out.frames = append(out.frames, f)
	}
	out.stdout, out.stderr, out.Result = stdout.String(), stderr.String(), p.Result()
	return out
}

// start starts a command; an empty ID gets one.
func start(t *testing.T, c *agent.Client, cmd agent.Command) *agent.Process {
	t.Helper()
	if cmd.ID == "" {
		cmd.ID = sandbox.NewProcessID()
	}
	p, err := c.Start(within(t), cmd)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func run(t *testing.T, c *agent.Client, cmd agent.Command) output {
	t.Helper()
	return collect(t, start(t, c, cmd))
}

// sh runs a line of shell, which must succeed, and gives what it wrote.
func sh(t *testing.T, c *agent.Client, line string) string {
	t.Helper()
	out := run(t, c, agent.Command{Shell: line})
	if out.ExitCode != 0 {
		t.Fatalf("%s: exit code %d\n%s%s", line, out.ExitCode, out.stdout, out.stderr)
	}
	return out.stdout
}

// await reads frames until the output so far satisfies ok.
func await(t *testing.T, p *agent.Process, ok func(sofar string) bool) string {
	t.Helper()
	ctx := within(t)
	var all []byte
	for !ok(string(all)) {
		f, err := p.Next(ctx)
		if err != nil {
			t.Fatalf("waiting for output, after %q: %v", all, err)
		}
		all = append(all, f.Data...)
	}
	return string(all)
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("code: got %q, want %q (%v)", got, want, err)
	}
	if fault.Of(err) != "" && fault.As(err).Message == "" {
		t.Error("the error has no message")
	}
}

func put(t *testing.T, c *agent.Client, path, content string) {
	t.Helper()
	if _, _, err := c.WriteFile(within(t), path, bytes.NewReader([]byte(content)), sandbox.WriteFileOptions{MakeParents: true}); err != nil {
		t.Fatalf("WriteFile %q: %v", path, err)
	}
}

func get(t *testing.T, c *agent.Client, path string) string {
	t.Helper()
	_, r, err := c.ReadFile(within(t), path, sandbox.ReadFileOptions{})
	if err != nil {
		t.Fatalf("ReadFile %q: %v", path, err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("reading %q: %v", path, err)
	}
	return string(b)
}

func names(t *testing.T, c *agent.Client, path string) []string {
	t.Helper()
	list, _, err := c.List(within(t), path, sandbox.ListFilesOptions{})
	if err != nil {
		t.Fatalf("List %q: %v", path, err)
	}
	var all []string
	for _, fi := range list {
		all = append(all, fi.Name)
	}
	return all
}
