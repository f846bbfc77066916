// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/engine"
)

// Bounds of runs; the engine has the others.
const (
	maxIdentifier = 36
	maxRunTimeout = engine.MaxCommandTimeout
)

const commandsSchema = `{"type":"array","minItems":1,"description":"Commands to run in order. Each has exactly one of shell and argv.","items":{"type":"object","properties":{` +
	`"shell":{"type":"string","description":"Shell text (bash)."},` +
	`"argv":{"type":"array","items":{"type":"string"},"description":"Program and arguments, without a shell."},` +
	`"cwd":{"type":"string","description":"Absolute working directory, default options.default_cwd."},` +
	`"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables, over options.default_env."},` +
	`"timeout_ms":{"type":"integer","minimum":1,"maximum":86400000,"description":"Kill it after this, default 120000."},` +
	`"allow_failure":{"type":"boolean","description":"Its failure does not fail the run."}}}}`

// optionsSchema says what holds where await_completion is left out.
func optionsSchema(await bool) string {
	return `{"type":"object","description":"Options of the run.","properties":{` +
		`"ttl_seconds":{"type":"integer","minimum":1,"description":"Delete the sandbox when unused for so long, default 3600, at most 604800; each run starts it anew."},` +
		`"default_cwd":{"type":"string","description":"Default /workspace, as root /root."},` +
		`"default_env":{"type":"object","additionalProperties":{"type":"string"},"description":"Variables of all commands."},` +
		`"as_user":{"type":"string","enum":["sandbox","root"],"description":"Default sandbox."},` +
		`"continue_on_error":{"type":"boolean","description":"Run the rest after a failure; the run fails all the same."},` +
		`"lock_sandbox":{"type":"boolean","description":"Wait until earlier locked runs of this identifier have ended."},` +
		`"await_completion":{"type":"boolean","description":"Wait for the end and return it as final, default ` + strconv.FormatBool(await) + `; else answer at once."},` +
		`"await_timeout_ms":{"type":"integer","minimum":1,"description":"Wait so long at most, default 30000; the run goes on."}}}`
}

// runArgs is what a run was asked for.
type runArgs struct {
	engine.RunRequest
	id    string // a run that is there already
	await bool
	wait  time.Duration
	timed bool // the wait was given
}

// readRun reads the arguments; problems are kept in a. await is what holds where
// nothing is said of it.
func readRun(a *args, await bool) runArgs {
	r := runArgs{await: await, wait: defaultAwait}
	r.Sandbox = identifier(a)
	r.id = a.text("run_id")
	o := object{a: a, at: "options", values: a.values["options"]}.fields()
	if ttl, ok := o.integer("ttl_seconds", 1, 0); ok {
		r.TTL = min(time.Duration(ttl)*time.Second, engine.MaxRunTTL)
	}
	cwd := o.cwd("default_cwd", "")
	env := o.env("default_env")
	r.User = o.text("as_user")
	if r.User != "" && r.User != "sandbox" && r.User != "root" {
		a.add("options.as_user", "%q is neither sandbox nor root", clip(r.User))
	}
	r.GoOn, _ = o.boolean("continue_on_error")
	r.Lock, _ = o.boolean("lock_sandbox")
	if yes, ok := o.boolean("await_completion"); ok {
		r.await = yes
	}
	if ms, ok := o.integer("await_timeout_ms", 1, 0); ok {
		r.wait, r.timed = min(time.Duration(ms)*time.Millisecond, maxRunTimeout), true
	}
	o.rest()
	if r.id != "" && !a.has("commands") {
		r.await = true
		return r
	}
	var list []json.RawMessage
	switch {
	case r.id != "":
		a.add("run_id", "is given beside commands; it is of a run that has its own")
	case !a.has("commands"):
		a.add("commands", "is missing: a list like [{\"shell\": \"ls\"}]")
	case json.Unmarshal(a.values["commands"], &list) != nil:
		a.add("commands", "is %s and not a list", shown(a.values["commands"]))
	case len(list) == 0 || len(list) > engine.MaxRunCommands:
		a.add("commands", "has %d entries; there are 1 to %d in a run", len(list), engine.MaxRunCommands)
	default:
		for i, raw := range list {
			r.Commands = append(r.Commands, readRunCommand(a, fmt.Sprintf("commands[%d]", i), raw, cwd, env))
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

func readRunCommand(a *args, at string, raw json.RawMessage, cwd string, env map[string]string) engine.RunCommandRequest {
	var line string
	if json.Unmarshal(raw, &line) == nil { // a bare string is shell text
		raw = json.RawMessage(`{"shell":` + quote(line) + "}")
	}
	o := object{a: a, at: at, values: raw}.fields()
	c := engine.RunCommandRequest{Timeout: engine.DefaultRunTimeout, Cwd: o.cwd("cwd", cwd), Env: make(map[string]string)}
	for n, v := range env {
		c.Env[n] = v
	}
	for n, v := range o.env("env") {
		c.Env[n] = v
	}
	if ms, ok := o.integer("timeout_ms", 1, maxRunTimeout.Milliseconds()); ok {
		c.Timeout = time.Duration(ms) * time.Millisecond
	}
	c.AllowFailure, _ = o.boolean("allow_failure")
	c.Argv = o.texts("argv")
	// Clients send shell as a truth value beside argv, too.
	shell, isText := o.shell()
	switch {
	case isText && len(c.Argv) > 0 && !isShell(shell):
		a.add(at, "has both shell and argv; give one of them")
	case len(c.Argv) > 0 && shell != "":
		c.Shell, c.Argv = strings.Join(c.Argv, " "), nil
	case isText:
		c.Shell = shell
	case len(c.Argv) == 0:
		a.add(at, "has neither shell nor argv; give one of them")
	}
	o.rest()
	return c
}

func isShell(s string) bool {
	switch path.Base(s) {
	case "sh", "bash":
		return true
	}
	return false
}

// object is a nested object that is being read.
type object struct {
	a      *args
	at     string
	values json.RawMessage
	m      map[string]json.RawMessage
}

func (o object) fields() *object {
	o.m = make(map[string]json.RawMessage)
	if o.values != nil && json.Unmarshal(o.values, &o.m) != nil {
		o.a.add(o.at, "is %s and not an object", shown(o.values))
	}
	return &o
}

// get takes a value out; null is none.
func (o *object) get(name string) (json.RawMessage, bool) {
	v, ok := o.m[name]
	delete(o.m, name)
	return v, ok && string(bytes.TrimSpace(v)) != "null"
}

func (o *object) add(name, format string, v ...any) { o.a.add(o.at+"."+name, format, v...) }

func (o *object) text(name string) string {
	v, ok := o.get(name)
	if !ok {
		return ""
	}
	s, ok := asText(v)
	if !ok {
		o.add(name, "is %s and not a string", shown(v))
	}
	return s
}

// shell reads the shell text, or the truth value that some clients send there:
// then it is "true" and no text.
func (o *object) shell() (s string, isText bool) {
	v, ok := o.get("shell")
	if !ok {
		return "", false
	}
	var yes bool
	if json.Unmarshal(v, &yes) == nil {
		if yes {
			return "true", false
		}
		return "", false
	}
	if json.Unmarshal(v, &s) != nil {
		o.add("shell", "is %s and not a string", shown(v))
	}
	return s, strings.TrimSpace(s) != ""
}

// integer reads a whole number of at least least, and at most most where that
// is not zero.
func (o *object) integer(name string, least, most int64) (int64, bool) {
	v, ok := o.get(name)
	if !ok {
		return 0, false
	}
	s, _ := asText(v)
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	switch {
	case err != nil:
		o.add(name, "is %s and not a whole number", shown(v))
	case n < least:
		o.add(name, "%d is less than %d", n, least)
	case most > 0 && n > most:
		o.add(name, "%d is more than %d", n, most)
	}
	// What is longer than any duration means the longest.
	return min(n, int64(1<<31)), true
}

func (o *object) boolean(name string) (value, given bool) {
	v, ok := o.get(name)
	if !ok {
		return false, false
	}
	s, _ := asText(v)
	yes, err := strconv.ParseBool(strings.TrimSpace(s))
	if err != nil {
		o.add(name, "is %s and neither true nor false", shown(v))
	}
	return yes, true
}

func (o *object) env(name string) map[string]string {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	env, problem := variables(v)
	if problem != "" {
		o.add(name, "%s", problem)
	}
	return env
}

func (o *object) texts(name string) []string {
	v, ok := o.get(name)
	if !ok {
		return nil
	}
	var list []string
	if json.Unmarshal(v, &list) != nil {
		o.add(name, "is %s and not a list of strings", shown(v))
	}
	return list
}

func (o *object) cwd(name, def string) string {
	s := o.text(name)
	switch {
	case s == "":
		return def
	case !path.IsAbs(s):
		o.add(name, "%q is not absolute", clip(s))
	}
	return s
}

// rest refuses what is left: a misspelt option would silently not hold.
func (o *object) rest() {
	for _, n := range sortedKeys(o.m) {
		o.add(clip(n), "is not known")
	}
}
