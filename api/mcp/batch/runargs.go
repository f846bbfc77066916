// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/engine"
	"sandpit.dev/runs"
)

// Bounds of runs; the engine has the others.
const (
	maxIdentifier = 36
	maxRunTimeout = engine.MaxCommandTimeout
)

// CommandsSchema is the schema of a list of commands.
func CommandsSchema(d runs.Defaults) string {
	return `{"type":"array","minItems":1,"description":"Commands to run in order. Each has exactly one of shell and argv.","items":{"type":"object","properties":{` +
		`"shell":{"type":"string","description":"Shell text (bash)."},` +
		`"argv":{"type":"array","items":{"type":"string"},"description":"Program and arguments, without a shell."},` +
		`"cwd":{"type":"string","description":"Absolute working directory, default options.default_cwd."},` +
		`"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables, over options.default_env."},` +
		`"timeout_ms":{"type":"integer","minimum":1,"maximum":86400000,"description":"Kill it after this, default ` + milliseconds(d.Timeout) + `."},` +
		`"allow_failure":{"type":"boolean","description":"Its failure does not fail the run."}}}}`
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Seconds writes a length of time as schemas have it.
func Seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// OptionsSchema says what holds where await_completion is left out.
func OptionsSchema(await bool, d runs.Defaults) string {
	return `{"type":"object","description":"Options of the run.","properties":{` +
		`"ttl_seconds":{"type":"integer","minimum":1,"description":"Delete the sandbox when unused for so long, default ` + Seconds(d.TTL) + `, at most ` + Seconds(d.MaxTTL) + `; each run starts it anew."},` +
		`"default_cwd":{"type":"string","description":"Default /workspace, as root /root."},` +
		`"default_env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables of all commands."},` +
		`"as_user":{"type":"string","description":"sandbox (default), root, or an account."},` +
		`"continue_on_error":{"type":"boolean","description":"Run the rest after a failure; the run fails all the same."},` +
		`"lock_sandbox":{"type":"boolean","description":"Wait until earlier locked runs of this identifier have ended."},` +
		`"await_completion":{"type":"boolean","description":"Wait for the end and return it as final, default ` + strconv.FormatBool(await) + `; else answer at once."},` +
		`"await_timeout_ms":{"type":"integer","minimum":1,"description":"Wait so long at most, default ` + milliseconds(d.Wait) + `; the run goes on."}}}`
}

// runArgs is what a run was asked for.
type runArgs struct {
	runs.Request
	id    string // a run that is there already
	await bool
	wait  time.Duration
	timed bool // the wait was given
}

// readRun reads the arguments; problems are kept in a. await is what holds where
// nothing is said of it.
func readRun(a *toolset.Args, await bool, d runs.Defaults) runArgs {
	r := runArgs{await: await, wait: d.Wait}
	r.Sandbox = Identifier(a)
	r.id = a.Text("run_id")
	o := toolset.Object{Args: a, At: "options", Values: a.Values["options"]}.Fields()
	if ttl, ok := o.Integer("ttl_seconds", 1, 0); ok {
		r.TTL = min(time.Duration(ttl)*time.Second, d.MaxTTL)
	}
	cwd := o.Cwd("default_cwd", "")
	env := o.Env("default_env")
	r.User = o.Text("as_user")
	r.GoOn, _ = o.Boolean("continue_on_error")
	r.Lock, _ = o.Boolean("lock_sandbox")
	if yes, ok := o.Boolean("await_completion"); ok {
		r.await = yes
	}
	if ms, ok := o.Integer("await_timeout_ms", 1, 0); ok {
		r.wait, r.timed = min(time.Duration(ms)*time.Millisecond, maxRunTimeout), true
	}
	o.Rest()
	if r.id != "" && !a.Has("commands") {
		r.await = true
		return r
	}
	var list []json.RawMessage
	switch {
	case r.id != "":
		a.Add("run_id", "is given beside commands; it is of a run that has its own")
	case !a.Has("commands"):
		a.Add("commands", "is missing: a list like [{\"shell\": \"ls\"}]")
	case json.Unmarshal(a.Values["commands"], &list) != nil:
		a.Add("commands", "is %s and not a list", toolset.Shown(a.Values["commands"]))
	case len(list) == 0 || len(list) > runs.MaxCommands:
		a.Add("commands", "has %d entries; there are 1 to %d in a run", len(list), runs.MaxCommands)
	default:
		for i, raw := range list {
			r.Commands = append(r.Commands, readRunCommand(a, fmt.Sprintf("commands[%d]", i), raw, cwd, env, d.Timeout))
		}
	}
	return r
}

func validIdentifier(s string) bool {
	if s == "" || len(s) > maxIdentifier {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

func readRunCommand(a *toolset.Args, at string, raw json.RawMessage, cwd string, env map[string]string, timeout time.Duration) runs.Command {
	var line string
	if json.Unmarshal(raw, &line) == nil { // a bare string is shell text
		raw = json.RawMessage(`{"shell":` + toolset.Quote(line) + "}")
	}
	o := toolset.Object{Args: a, At: at, Values: raw}.Fields()
	c := runs.Command{Timeout: timeout, Cwd: o.Cwd("cwd", cwd), Env: make(map[string]string)}
	for n, v := range env {
		c.Env[n] = v
	}
	for n, v := range o.Env("env") {
		c.Env[n] = v
	}
	if ms, ok := o.Integer("timeout_ms", 1, maxRunTimeout.Milliseconds()); ok {
		c.Timeout = time.Duration(ms) * time.Millisecond
	}
	c.AllowFailure, _ = o.Boolean("allow_failure")
	c.Argv = o.Texts("argv")
	// Clients send shell as a truth value beside argv, too.
	shell, isText := o.Shell()
	switch {
	case isText && len(c.Argv) > 0 && !isShell(shell):
		a.Add(at, "has both shell and argv; give one of them")
	case len(c.Argv) > 0 && shell != "":
		c.Shell, c.Argv = strings.Join(c.Argv, " "), nil
	case isText:
		c.Shell = shell
	case len(c.Argv) == 0:
		a.Add(at, "has neither shell nor argv; give one of them")
	}
	o.Rest()
	return c
}

func isShell(s string) bool {
	switch path.Base(s) {
	case "sh", "bash":
		return true
	}
	return false
}

// Identifier reads it; a problem is kept in a.
func Identifier(a *toolset.Args) string {
	id := a.Text("identifier")
	if !validIdentifier(id) {
		a.Add("identifier", "%q is not of 1 to %d letters, digits, dashes and underscores", toolset.Clip(id), maxIdentifier)
	}
	return id
}
