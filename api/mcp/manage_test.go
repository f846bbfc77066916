// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/api/service"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

func TestUpdateSandbox(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box", "env": arguments{"OLD": "1"}})
	res := call(t, s, "update_sandbox", arguments{
		"sandbox": "box", "memory_mb": 1000, "cpus": 0.5, "pids": "77", "env": []string{"NEW=a value"}, "labels": arguments{"team": "red"},
		"ttl_minutes": 600, "unused_ttl_minutes": 90, "idle_minutes": 5, "idle_action": "pause", "retention_minutes": 60,
		"auto_start": false, "auto_resume": true, "checkpoints": "command",
	})
	wantParts(t, text(t, res), "changed sandbox box, which is running", "0.5 CPU, 1000 MiB memory", "paused after 5 idle minutes")
	got, err := h.engine.Get(t.Context(), callers["t-alice"], "box")
	if err != nil {
		t.Fatal(err)
	}
	if got.Limits.CPU != 0.5 || got.Limits.MemoryMB != 1000 || got.Limits.Pids != 77 || got.Limits.DiskMB != sandbox.DefaultLimits().DiskMB ||
		fmt.Sprint(got.Env) != "map[NEW:a value]" || fmt.Sprint(got.Metadata) != "map[team:red]" ||
		got.TTL != 90*time.Minute || got.IdleTimeout != 5*time.Minute || got.OnIdle != sandbox.IdlePause || got.Retention != time.Hour ||
		got.AutoStart || !got.AutoResume || got.AutoDelete || got.Checkpoints != sandbox.CheckpointsCommand {
		t.Errorf("got %+v", got)
	}
	if left := time.Until(got.ExpiresAt); left < 599*time.Minute || left > 600*time.Minute {
		t.Errorf("it ends in %v, want ten hours", left)
	}
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo $OLD$NEW"}), "a value")
	got, err = h.engine.Get(t.Context(), callers["t-alice"], "box")
	if err != nil {
		t.Fatal(err)
	}
	ok(t, s, "update_sandbox", arguments{"sandbox": "box", "ttl_minutes": 0, "memory_mb": 900})
	after, err := h.engine.Get(t.Context(), callers["t-alice"], "box")
	if err != nil || !after.ExpiresAt.IsZero() || after.Limits.MemoryMB != 900 || after.TTL != got.TTL || after.Limits.CPU != 0.5 || len(after.Env) != 1 {
		t.Errorf("what was left out did not stay: %+v, %v", after, err)
	}

	// All that get_sandbox has to say of it, but no value of a variable.
	whole := call(t, s, "get_sandbox", arguments{"sandbox": "box"})
	wantParts(t, text(t, whole), "sandbox box is running", "deleted when unused for 90 minutes", "deleted when stopped for 60 minutes", "a call does not start it",
		"a call resumes it, whoever paused it", "checkpoints: a snapshot", "variables: NEW (values are not shown)", "labels: team", "1 commands of ", "77 processes at most")
	data := string(jsonOf(t, whole))
	wantParts(t, data, `"env_names":["NEW"]`, `"labels":{"team":"red"}`, `"pids":77`, `"unused_ttl_minutes":90`, `"commands":1`, `"runtime":"memory"`)
	if strings.Contains(data, "a value") {
		t.Errorf("a variable's value is shown: %s", data)
	}

	ok(t, s, "update_sandbox", arguments{"sandbox": "box", "env_set": arguments{"ADDED": "yes"}, "env_unset": "NEW,OTHER"})
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo [$ADDED$NEW]"}), "[yes]")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box"}, "say what shall change")
	h.wrong(t, "update_sandbox", arguments{"memory_mb": 100}, "argument sandbox is missing")
	if got := structured[handle](t, call(t, s, "update_sandbox", arguments{"sandbox": "box", "size": "large", "memory_mb": 900})); got.CPUs != 4 || got.MemoryMB != 900 {
		t.Errorf("got %v CPU and %d MiB, want 4 and 900", got.CPUs, got.MemoryMB)
	}
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "size": "huge"}, `argument size "huge" is not valid; use small, medium, large`)
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "memory_mb": 1}, "argument memory_mb 1 is outside")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "none", "pids": 10}, "error (not_found)", "there is: box", "create_sandbox")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "idle_action": "burn"}, "not one of stop, pause")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "network": "restricted", "allow_addresses": "nonsense"}, "argument allow_addresses")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "allow_domains": "x.example", "allow_ports": "0-99999"}, "argument allow_ports")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "allow_domains": []string{"x.example", "y.example"}, "allow_ports": []any{"0-99999", 443}}, "argument allow_ports")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "allow_domains": []any{nil, "x.example"}}, "argument allow_domains[0] is null and not a string")
	h.wrong(t, "update_sandbox", arguments{"sandbox": "box", "network": "open"}, "error (unsupported)")
	reader := call(t, h.session("t-reader", handshake, nil), "update_sandbox", arguments{"sandbox": "box", "pids": 10})
	wantParts(t, text(t, reader), "error (denied)", "sandboxes:write")
}

// TestTheNextCallIsTheToolThatThereIs: what ran into a limit, or into the network's, is
// told the tool that changes it, where the caller has that.
func TestTheNextCallIsTheToolThatThereIs(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := &strict{Engine: h.engine, networks: []sandbox.NetworkMode{sandbox.NetworkOff, sandbox.NetworkRestricted}}
	_, h.url = serve(t, e, h.inside, h.runs, h.code, toolset.GroupManage)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	run := arguments{"sandbox": "box", "command": "echo 'Could not resolve host: x.example'; exit 1"}
	wantParts(t, ok(t, s, "run_command", run), `else update_sandbox with {"sandbox": "box", "network": "restricted"`)
	for cause, limit := range map[sandbox.Cause]string{sandbox.CauseOOM: "memory_mb", sandbox.CauseDisk: "disk_mb"} {
		e.cause, e.detail = cause, "why"
		wantParts(t, ok(t, s, "run_command", run), `or update_sandbox with {"sandbox": "box", "`+limit+`": …} and a larger number`)
	}
}

func TestStopAndStart(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	ok(t, s, "run_command", arguments{"sandbox": "box", "command": "echo kept > file"})
	wantParts(t, ok(t, s, "stop_sandbox", arguments{"sandbox": "box"}), "sandbox box is stopped", "start_sandbox starts it again")
	wantParts(t, ok(t, s, "get_sandbox", arguments{"sandbox": "box"}), "sandbox box is stopped (user)")
	h.wrong(t, "stop_sandbox", nil, "argument sandbox is missing")
	h.wrong(t, "stop_sandbox", arguments{"sandbox": "box", "grace_seconds": 601}, "argument grace_seconds 601 is outside 0 to 600")
	if got := ok(t, s, "start_sandbox", arguments{"sandbox": "box"}); got != "sandbox box is running" {
		t.Errorf("got %q", got)
	}
	ok(t, s, "start_sandbox", arguments{"sandbox": "box"})
	wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat file"}), "kept")
	// With a grace of the caller's a program ends by itself, and without any it does not.
	for grace, want := range map[string]string{"600": "ended by itself", "0": "none"} {
		ok(t, s, "run_command", arguments{"sandbox": "box", "background": true, "command": "rm -f log; trap 'sleep 0.2; echo ended by itself > log; exit' TERM; touch ready; while :; do sleep 0.05; done"})
		ok(t, s, "run_command", arguments{"sandbox": "box", "command": "until [ -e ready ]; do sleep 0.01; done; rm ready"})
		wantParts(t, ok(t, s, "stop_sandbox", arguments{"sandbox": "box", "grace_seconds": grace}), "sandbox box is stopped")
		ok(t, s, "start_sandbox", arguments{"sandbox": "box"})
		wantParts(t, ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat log || echo none"}), want)
	}
	ok(t, s, "update_sandbox", arguments{"sandbox": "box", "auto_delete": true})
	wantParts(t, ok(t, s, "stop_sandbox", arguments{"sandbox": "box"}), "stopped sandbox box, which deleted it")
	h.wrong(t, "start_sandbox", arguments{"sandbox": "box"}, "error (not_found)")
}

func TestShells(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	run := func(args arguments) string {
		t.Helper()
		args["sandbox"] = "box"
		return ok(t, s, "run_in_shell", args)
	}
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	wantParts(t, run(arguments{"command": "mkdir app && cd app && export WHO=me"}), "exit 0 after ", "shell main · sandbox box")
	wantParts(t, run(arguments{"cmd": "pwd; echo $WHO >&2; false"}), "exit 1 after ", "/app\n", "--- stderr (3 bytes) ---\nme")
	wantParts(t, run(arguments{"command": "cat; echo $X", "stdin": "given\n", "env": arguments{"X": "1"}}), "given\n1")

	wantParts(t, run(arguments{"command": []string{"printf", "%s", "a  $b"}}), "exit 0 after ", "\na  $b")

	t.Run("ACommandHasANameAndLabels", func(t *testing.T) {
		wantParts(t, run(arguments{"command": "echo out; echo err >&2; sleep 600", "name": "dev", "labels": arguments{"kind": "server"}, "merge_output": true, "wait_seconds": 0.2}), "still running: command ")
		wantParts(t, ok(t, s, "list_processes", arguments{"sandbox": "box", "labels": arguments{"kind": "server"}}), "1 process runs in sandbox box", "name:dev")
		wantParts(t, ok(t, s, "read_process", arguments{"sandbox": "box", "process": "name:dev"}), "out\nerr")
		h.wrong(t, "run_in_shell", arguments{"sandbox": "box", "shell": "second", "command": "true", "name": "dev"}, "error (exists)", `a process named "dev" runs`)
		h.wrong(t, "run_in_shell", arguments{"sandbox": "box", "command": "true", "name": "a/b"}, "argument name")
		ok(t, s, "end_context", arguments{"sandbox": "box", "shell": "main", "how": "interrupt"})
	})

	t.Run("OneThatTakesLongIsWaitedForAgain", func(t *testing.T) {
		res := run(arguments{"command": "echo begun; sleep 1; echo end", "wait_seconds": 0.2})
		wantParts(t, res, "still running: command ", "next: run_in_shell with ", "end_context with ", "begun")
		id := strings.Fields(strings.TrimPrefix(verdict(res), "still running: command "))[0]
		wantParts(t, run(arguments{"command_id": id}), "exit 0 after ", "begun\nend")
		h.wrong(t, "run_in_shell", arguments{"sandbox": "box", "command_id": "none"}, "error (not_found)")
		h.wrong(t, "run_in_shell", arguments{"sandbox": "box", "command_id": id, "command": "true"}, "is given beside command")
		h.wrong(t, "run_in_shell", arguments{"sandbox": "box"}, "argument command is missing")
	})

	t.Run("OneThatRunsIsInterrupted", func(t *testing.T) {
		res := run(arguments{"command": "touch begun; sleep 600", "wait_seconds": 0.2})
		ok(t, s, "run_command", arguments{"sandbox": "box", "command": "until [ -e app/begun ]; do sleep 0.01; done"}) // a busy machine takes longer
		id := strings.Fields(strings.TrimPrefix(verdict(res), "still running: command "))[0]
		wantParts(t, ok(t, s, "list_contexts", arguments{"sandbox": "box"}), "0 contexts of code and 1 shell", "shell main · busy")
		wantParts(t, ok(t, s, "end_context", arguments{"sandbox": "box", "shell": "main", "how": "interrupt"}), "interrupted what ran in shell main")
		wantParts(t, run(arguments{"command_id": id}), "exit 130")
		wantParts(t, run(arguments{"command": "echo $WHO"}), "me")
	})

	t.Run("AreMadeListedAndEnded", func(t *testing.T) {
		wantParts(t, ok(t, s, "create_context", arguments{"sandbox": "box", "shell": "other", "cwd": "app", "env": arguments{"Y": "2"}}), "made shell other", "run_in_shell with ")
		wantParts(t, run(arguments{"shell": "other", "command": "pwd; echo $Y$WHO"}), "/app\n2")
		type listing struct {
			Contexts []struct{ Shell, Language, Status string }
		}
		got := structured[listing](t, call(t, h.session("t-reader", handshake, nil), "list_contexts", arguments{"sandbox": "box"})).Contexts
		if len(got) != 2 || got[0].Shell != "main" || got[1].Shell != "other" || got[0].Language != "bash" || got[0].Status != "idle" {
			t.Errorf("got %+v", got)
		}
		wantParts(t, ok(t, s, "end_context", arguments{"sandbox": "box", "shell": "main"}), "ended shell main")
		wantParts(t, run(arguments{"command": "echo \"[$WHO]\""}), "[]")
		h.wrong(t, "create_context", arguments{"sandbox": "box", "shell": "other"}, "error (exists)")
		h.wrong(t, "create_context", arguments{"sandbox": "box", "shell": "x", "language": "python"}, "a shell is a bash")
		h.wrong(t, "end_context", arguments{"sandbox": "box", "shell": "none"}, "error (not_found)")
		h.wrong(t, "end_context", arguments{"sandbox": "box", "shell": "main", "how": "restart"}, "restart is for contexts")
		h.wrong(t, "end_context", arguments{"sandbox": "box"}, "give one of the two")
	})

	t.Run("OneThatItsCommandEndsSaysSo", func(t *testing.T) {
		wantParts(t, run(arguments{"command": "exit 3"}), "exit 3", "note: the command took the shell with it")
		wantParts(t, run(arguments{"command": "echo again"}), "again", "note: the shell was begun anew")
	})
}

func TestContextsOfCode(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	made := structured[struct{ Context, Language string }](t, call(t, s, "create_context", arguments{"sandbox": "box"}))
	if made.Language != "python" || made.Context == "" {
		t.Fatalf("got %+v", made)
	}
	code := func(context, code string) string {
		t.Helper()
		return ok(t, s, "run_code", arguments{"sandbox": "box", "context": context, "code": code})
	}
	code(made.Context, "x = 6 * 7")
	ok(t, s, "run_code", arguments{"sandbox": "box", "code": "x = 1"}) // the language's own
	wantParts(t, code(made.Context, "x"), "42")
	wantParts(t, ok(t, s, "list_contexts", arguments{"sandbox": "box"}), "2 contexts of code and 0 shells", "context "+made.Context+" · python · idle", "the default of its language")

	res := ok(t, s, "run_code", arguments{"sandbox": "box", "context": made.Context, "code": "import time\ntime.sleep(600)", "wait_seconds": 3})
	wantParts(t, res, "still running")
	wantParts(t, ok(t, s, "end_context", arguments{"sandbox": "box", "context": made.Context, "how": "interrupt"}), "interrupted what ran in context "+made.Context)
	wantParts(t, code(made.Context, "x"), "42")
	wantParts(t, ok(t, s, "end_context", arguments{"sandbox": "box", "context": made.Context, "how": "restart"}), "its variables are gone")
	wantParts(t, code(made.Context, "x"), "NameError")
	ok(t, s, "end_context", arguments{"sandbox": "box", "context": made.Context})
	h.wrong(t, "run_code", arguments{"sandbox": "box", "context": made.Context, "code": "x"}, "error (not_found)")
	h.wrong(t, "end_context", arguments{"sandbox": "box", "context": made.Context}, "error (not_found)")
}

func TestProcessesAreStartedByName(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	res := ok(t, s, "start_process", arguments{"sandbox": "box", "command": "echo up; echo err >&2; exec cat", "name": "dev", "labels": arguments{"kind": "server"}, "merge_output": true})
	wantParts(t, res, "started in the background: process ", "up\nerr")
	h.wrong(t, "start_process", arguments{"sandbox": "box", "command": "true", "name": "dev"}, "error (exists)", "name:dev")
	wantParts(t, ok(t, s, "list_processes", arguments{"sandbox": "box", "labels": arguments{"kind": "server"}}), "1 process runs in sandbox box", "name:dev")
	if got := ok(t, s, "list_processes", arguments{"sandbox": "box", "labels": arguments{"kind": "other"}}); got != "0 processes run in sandbox box" {
		t.Errorf("got %q", got)
	}
	wantParts(t, ok(t, s, "write_process", arguments{"sandbox": "box", "process": "name:dev", "input": "this\n"}), "this")
	wantParts(t, ok(t, s, "read_process", arguments{"sandbox": "box", "process": "name:dev"}), "up\nerr\nthis")
	wantParts(t, ok(t, s, "stop_process", arguments{"sandbox": "box", "process": "name:dev"}), "it ended after")
	h.wrong(t, "stop_process", arguments{"sandbox": "box", "process": "name:nosuch"}, "error (not_found)")
	labels := arguments{}
	for i := range 17 {
		labels[strconv.Itoa(i)] = "x"
	}
	h.wrong(t, "start_process", arguments{"sandbox": "box", "command": "true", "labels": labels}, "has 17 labels, more than 16")
}

func TestTerminals(t *testing.T) {
	t.Parallel()
	h := openWith(t, toolset.GroupManage, toolset.GroupInspect)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	res := ok(t, s, "open_terminal", arguments{"sandbox": "box", "command": "stty size; read x; stty size; echo \"got $x\"", "cols": 90, "rows": 30})
	wantParts(t, res, "opened a terminal: process ", "30 90", "next: read_process")
	id := strings.Fields(strings.TrimPrefix(verdict(res), "opened a terminal: process "))[0]
	wantParts(t, ok(t, s, "list_processes", arguments{"sandbox": "box", "terminals": true}), "1 process runs in sandbox box", id, "at a terminal", "stty size")
	wantParts(t, ok(t, s, "resize_terminal", arguments{"sandbox": "box", "process": id, "cols": 120, "rows": 40}), "has 120 columns and 40 rows")
	wantParts(t, ok(t, s, "write_process", arguments{"sandbox": "box", "process": id, "input": "this\n"}), "40 120", "got this")
	h.wrong(t, "resize_terminal", arguments{"sandbox": "box", "process": "none", "cols": 1, "rows": 1}, "error (not_found)", "no process runs there")
	h.wrong(t, "resize_terminal", arguments{"sandbox": "box", "process": id}, "argument cols is missing")
	wantParts(t, ok(t, s, "open_terminal", arguments{"sandbox": "box", "command": []string{"echo", "a  $b"}}), "a  $b")
	h.wrong(t, "open_terminal", arguments{"sandbox": "box", "cols": 1001}, "argument cols 1001 is outside 1 to 1000")
	// Without a command it is a login shell.
	res = ok(t, s, "open_terminal", arguments{"sandbox": "box"})
	id = strings.Fields(strings.TrimPrefix(verdict(res), "opened a terminal: process "))[0]
	wantParts(t, ok(t, s, "write_process", arguments{"sandbox": "box", "process": id, "input": "echo $((6*7))\n"}), "42")
	ok(t, s, "stop_process", arguments{"sandbox": "box", "process": id, "signal": "KILL"})
}

// factory is an engine whose images take a while.
type factory struct {
	service.Engine
	allImages
	status image.Status
	built  chan struct{}
}

func (f *factory) Images(context.Context, access.Caller) ([]image.Status, error) {
	ready := image.Status{Entry: image.Entry{Name: "python", Aliases: []string{"py"}, Title: "Python"}, Default: true, Allowed: true, State: image.Ready}
	ready.Image.SizeBytes, ready.Image.Versions = 1<<30, map[string]string{"python": "3.13"}
	return []image.Status{ready, f.status}, nil
}

func (f *factory) BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error) {
	if err := c.Require(access.Admin); err != nil {
		return image.Status{}, err
	}
	if name != f.status.Name {
		return image.Status{}, fault.New(fault.NotFound, "there is no image %q", name)
	}
	select {
	case <-f.built:
		s := f.status
		s.State = image.Ready
		return s, nil
	case <-ctx.Done():
		return image.Status{}, fault.Wrap(fault.Timeout, ctx.Err(), "the image is not built yet")
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	h := open(t)
	e := &factory{Engine: h.engine, built: make(chan struct{}), status: image.Status{
		Entry: image.Entry{Name: "node"}, Allowed: true, State: image.Building, Stage: "packages", Progress: 0.5,
	}}
	_, h.url = serve(t, e, h.inside, h.runs, h.code, toolset.GroupManage, toolset.GroupInspect)
	res := call(t, h.session("t-reader", handshake, nil), "list_images", nil)
	wantParts(t, text(t, res), "2 images", "python (the default) · ready · Python · python 3.13 · also py", "node · building · 50 %")
	wantParts(t, string(jsonOf(t, res)), `"default":true`, `"stage":"packages"`, `"size_bytes":1073741824`)
	h.wrong(t, "build_image", arguments{"image": "node"}, "error (denied)", "admin")
	s := h.session("t-admin", handshake, nil)
	wantParts(t, ok(t, s, "build_image", arguments{"image": "node", "wait_seconds": 0}), "the image is being built: node", "next: list_images")
	close(e.built)
	wantParts(t, ok(t, s, "build_image", arguments{"image": "node"}), "the image is built: node · ready")
	if res := call(t, s, "build_image", arguments{"image": "none"}); !res.IsError || !strings.Contains(text(t, res), "there is no image") {
		t.Errorf("got %s", text(t, res))
	}
}
