// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/internal/admission"
	"sandpit.dev/network/egress"
	"sandpit.dev/network/policy"
	"sandpit.dev/sandbox"
)

// strict is an engine with what the memory runtime has not: a network with a
// policy, limits that end commands, files that are denied.
type strict struct {
	service.Engine
	network  engine.NetworkLog
	networks []sandbox.NetworkMode
	cause    sandbox.Cause
	full     bool // no process can be started
	detail   string
}

func (e *strict) NetworkLog(context.Context, access.Caller, string) (engine.NetworkLog, error) {
	for i := range e.network.Entries {
		e.network.Entries[i].Last = time.Now()
	}
	return e.network, nil
}

func (e *strict) Networks() []sandbox.NetworkMode { return e.networks }

func (e *strict) Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error) {
	if e.full {
		err := fault.New(fault.Exhausted, "the command was not started: the sandbox's limit of processes or of memory is reached (cause pids)").
			WithRemedy("kill processes in the sandbox, or give it a higher limit")
		err.Inside = true
		return engine.ExecResult{}, err
	}
	res, err := e.Engine.Exec(ctx, c, ref, r, sink)
	if e.cause != "" {
		res.Cause, res.CauseDetail, res.ExitCode = e.cause, e.detail, 137
	}
	return res, err
}

// readOnly refuses writes of files.
type readOnly struct{ service.Files }

func (readOnly) WriteFile(_ context.Context, _ access.Caller, _, path string, _ io.Reader, _ sandbox.WriteFileOptions) (sandbox.FileInfo, bool, error) {
	return sandbox.FileInfo{}, false, fault.New(fault.Denied, `the user "sandbox" sees the system's files read-only, and so is not allowed to write %q`, path)
}

func (e *strict) Create(ctx context.Context, c access.Caller, r engine.CreateRequest) (*sandbox.Sandbox, bool, error) {
	if r.Key == "one-too-many" {
		return nil, false, fault.New(fault.Exhausted, "your project has 2 sandboxes, and may have 2").WithRemedy("delete one")
	}
	if r.Key == "many-at-once" {
		// As a gate whose only place is taken says it.
		g := admission.New(admission.Options{What: "things", AtOnce: 1, Waiting: 1})
		leave, err := g.Enter(ctx, c.Project)
		if err != nil {
			return nil, false, err
		}
		defer leave()
		over, cancel := context.WithCancel(ctx)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			_, _ = g.Enter(over, c.Project) // the one that may wait
		}()
		for g.Figures().Waiting == 0 {
			runtime.Gosched()
		}
		_, err = g.Enter(ctx, c.Project)
		cancel()
		<-waited
		return nil, false, err
	}
	return e.Engine.Create(ctx, c, r)
}

// TestCauses shows for what a real host does that the answer names the cause, the
// value and the next call.
func TestCauses(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupRuns)
	e := &strict{Engine: h.engine, networks: []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted}}
	_, h.url = serve(t, e, readOnly{h.inside}, h.runs, h.code, toolset.GroupRuns)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	run := func(command string, want ...string) string {
		t.Helper()
		got := ok(t, s, "run_command", arguments{"sandbox": "box", "command": command})
		before, _, _ := strings.Cut(got, "\n--- ")
		wantParts(t, before, want...)
		return got
	}

	t.Run("TheNetworkIsOff", func(t *testing.T) {
		run("echo 'curl: (6) Could not resolve host: pypi.example' >&2; exit 6", "exit 6",
			`network blocked: "pypi.example" is not reached, since the sandbox's network is off`, `next: request_network with {"sandbox": "box", "allow": "pypi.example"}`, "else create_sandbox", "allow_domains", "ask the user", "or the presets debian, github, huggingface, node, python")
		run("echo 'ERROR: Could not find a version that satisfies the requirement a (from versions: none)'; exit 1",
			"network blocked: what it asked for", `"allow": "…"} asks for it, or for presets`)
		e.networks = e.networks[:1]
		run("echo 'Temporary failure in name resolution'; exit 1", "network blocked: what it asked for", "this server gives no sandbox a network")
		if got := run("echo 'no such host, they say'"); strings.Contains(got, "network blocked") {
			t.Errorf("of a command that worked:\n%s", got)
		}
		if got := run("echo other; exit 1"); strings.Contains(got, "network blocked") {
			t.Errorf("of a command that failed for another reason:\n%s", got)
		}
	})

	t.Run("ThePolicyRefused", func(t *testing.T) {
		e.network = engine.NetworkLog{
			Policy: sandbox.NetworkPolicy{Mode: sandbox.NetworkRestricted, AllowDomains: []string{"pypi.example"}},
			Entries: []egress.Entry{
				{Protocol: "tcp", Name: "evil.example", Port: 443, Reason: policy.Domain, Count: 2},
				{Protocol: "tcp", Name: "pypi.example", Port: 443, Count: 1},
			},
		}
		got := run("exit 1", "network blocked: evil.example is not among the names that this sandbox may reach; add it to allow_domains\n", "policy restricted, which allows pypi.example", `next: request_network with {"sandbox": "box", "allow": "evil.example"} asks for it`, "else ask the user, or whoever runs this server")
		if strings.Contains(got, "blocked: pypi") {
			t.Errorf("what was let through is told as blocked:\n%s", got)
		}
		e.network = engine.NetworkLog{}
	})

	t.Run("LimitsEndedIt", func(t *testing.T) {
		for cause, want := range map[sandbox.Cause][]string{
			sandbox.CauseOOM:     {"exit 137 (killed: out of memory)", "cause: why", "peaked at the limit of 512 MiB", "memory_mb"},
			sandbox.CausePids:    {"(failed: too many processes)", "cause: why", "processes and threads"},
			sandbox.CauseDisk:    {"(failed: the disk is full)", "1024 MiB of disk", "disk_mb"},
			sandbox.CauseTimeout: {"(killed: its timeout passed)", "timeout_seconds", `{"background": true}`},
		} {
			e.cause, e.detail = cause, "why"
			run("true", want...)
		}
		e.cause = ""
	})

	t.Run("ThePathIsNotForIt", func(t *testing.T) {
		h.wrong(t, "write_file", arguments{"sandbox": "box", "path": "/etc/passwd", "content": "x"},
			"error (denied)", `"/etc/passwd"`, "next: the user sandbox writes below /workspace, /artifacts, /home/sandbox, /tmp, /var/tmp", "as_user")
	})

	t.Run("TheQuotaIsUsedUp", func(t *testing.T) {
		h.wrong(t, "create_sandbox", arguments{"name": "one-too-many"}, "error (exhausted): your project has 2 sandboxes, and may have 2", "delete_sandbox", "there are: box")
	})

	t.Run("TheServerIsBusy", func(t *testing.T) {
		res := call(t, s, "create_sandbox", arguments{"name": "many-at-once"})
		got := text(t, res)
		wantParts(t, got, "error (exhausted): the server begins 1 things at a time", "next: call create_sandbox again in 1s", "nothing was begun")
		if !res.IsError || strings.Contains(got, "delete_sandbox") {
			t.Errorf("it tells to delete sandboxes, which does not help:\n%s", got)
		}
	})

	t.Run("TheSandboxIsFull", func(t *testing.T) {
		e.full = true
		res := call(t, s, "run_command", arguments{"sandbox": "box", "command": "true"})
		e.full = false
		got := text(t, res)
		wantParts(t, got, "error (exhausted)", "(cause pids)", `next: call stop_process with {"sandbox": "box", "all": true}`, "keeps its files")
		if !res.IsError || strings.Contains(got, "delete_sandbox") {
			t.Errorf("it tells to delete sandboxes, which does not help this one:\n%s", got)
		}
	})

	t.Run("TheSandboxWasDeleted", func(t *testing.T) {
		made := structured[handle](t, call(t, s, "create_sandbox", arguments{"name": "brief"}))
		ok(t, s, "delete_sandbox", arguments{"identifier": "brief"})
		h.wrong(t, "run_command", arguments{"sandbox": made.ID, "command": "ls"}, "error (not_found)", made.ID, "it was deleted at 20", `by "alice"`, "create_sandbox", "box")
	})

	t.Run("TheScopeIsMissing", func(t *testing.T) {
		for _, tool := range []string{"run_command", "run_code", "write_file", "edit_file", "write_process", "stop_process", "create_sandbox", "delete_sandbox", "run_sandbox", "expose_port"} {
			res := call(t, h.session("t-reader", handshake, nil), tool, arguments{"sandbox": "box"})
			if wantParts(t, text(t, res), "error (denied)", "scope sandboxes:write", `"reader"`); !res.IsError {
				t.Errorf("%s: a reader may", tool)
			}
		}
	})
}
