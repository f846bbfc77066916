// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of requests.
const (
	MaxEnv            = 256             // variables
	MaxEnvName        = 255             // bytes
	MaxEnvValue       = 32 << 10        // bytes
	MaxEnvTotal       = 128 << 10       // bytes of names and values together
	MaxMetadata       = 64              // labels
	MaxMetadataKey    = 63              // bytes
	MaxMetadataValue  = 256             // bytes
	MaxCommand        = 128 << 10       // bytes of shell text, or of all arguments together
	MaxArgs           = 1024            // arguments
	MaxStdin          = agent.MaxStdin  // bytes given with a command
	MaxPath           = 4095            // bytes
	MaxCollected      = 16 << 20        // bytes a stream, held for a caller without a sink
	MaxStreamed       = agent.MaxOutput // bytes a stream, to a sink
	DefaultOutput     = 1 << 20         // bytes a stream, of a command that names no bound
	MaxCommandTimeout = 24 * time.Hour
	MinClock          = time.Second
)

// check collects every wrong field of a request, so that one answer names them all.
type check struct{ fields []fault.Field }

func (k *check) bad(field, format string, args ...any) {
	k.fields = append(k.fields, fault.InvalidField(field, format, args...).Fields...)
}

// add takes the fields of an Invalid error.
func (k *check) add(err error) {
	if err != nil {
		k.fields = append(k.fields, fault.As(err).Fields...)
	}
}

func (k *check) err() error {
	if len(k.fields) == 0 {
		return nil
	}
	return fault.InvalidFields(k.fields...)
}

func (k *check) env(env map[string]string) {
	if len(env) > MaxEnv {
		k.bad("env", "has %d variables, more than %d", len(env), MaxEnv)
		return
	}
	total := 0
	for n, v := range env {
		total += len(n) + len(v)
		switch {
		case !validEnvName(n):
			k.bad("env", "%q is not a valid variable name: a letter or _, then letters, digits and _, at most %d", sandbox.Clip(n, 80), MaxEnvName)
		case len(v) > MaxEnvValue:
			k.bad("env", "the value of %s has %d bytes, more than %d", n, len(v), MaxEnvValue)
		case strings.ContainsRune(v, 0):
			k.bad("env", "the value of %s holds a NUL byte", n)
		}
	}
	if total > MaxEnvTotal {
		k.bad("env", "has %d bytes in all, more than %d", total, MaxEnvTotal)
	}
}

func validEnvName(n string) bool {
	if n == "" || len(n) > MaxEnvName {
		return false
	}
	for i := range len(n) {
		c := n[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func (k *check) metadata(field string, m map[string]string) {
	if len(m) > MaxMetadata {
		k.bad(field, "has %d labels, more than %d", len(m), MaxMetadata)
		return
	}
	for n, v := range m {
		switch {
		case n == "" || len(n) > MaxMetadataKey || !plain(n):
			k.bad(field, "the label %q has to have 1 to %d bytes of printable text", sandbox.Clip(n, 80), MaxMetadataKey)
		case len(v) > MaxMetadataValue:
			k.bad(field, "the value of %q has %d bytes, more than %d", n, len(v), MaxMetadataValue)
		case !plain(v):
			k.bad(field, "the value of %q holds what is not printable text", n)
		}
	}
}

// plain reports whether s is UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// clock checks a timeout of a sandbox: never (zero), or MinClock to MaxClock.
func (k *check) clock(field string, d time.Duration) {
	if d != 0 && (d < MinClock || d > sandbox.MaxClock) {
		k.bad(field, "%s is outside %s to %s seconds (0 means never)",
			seconds(d), seconds(MinClock), seconds(sandbox.MaxClock))
	}
}

// onIdle checks what is to become of an idle sandbox.
func (k *check) onIdle(a *sandbox.IdleAction) {
	if a != nil && *a != sandbox.IdleStop && *a != sandbox.IdlePause {
		k.bad("idle_action", "%q is neither %q nor %q", sandbox.Clip(string(*a), 40), sandbox.IdleStop, sandbox.IdlePause)
	}
}

// checkpoints checks when snapshots are to be taken by themselves.
func (k *check) checkpoints(c *sandbox.Checkpoints) {
	if c != nil && *c != sandbox.CheckpointsOff && *c != sandbox.CheckpointsCommand {
		k.bad("checkpoints", "%q is neither %q nor %q", sandbox.Clip(string(*c), 40), sandbox.CheckpointsOff, sandbox.CheckpointsCommand)
	}
}

// seconds is how the wire writes a duration.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func (k *check) limits(l, most sandbox.Limits) { k.add(l.CheckUpTo(most)) }

func (k *check) key(key string) { k.add(sandbox.CheckKey("key", key)) }

func (k *check) command(shell string, argv []string) {
	switch {
	case shell == "" && len(argv) == 0:
		k.bad("command", "is empty")
	case shell != "" && len(argv) > 0:
		k.bad("command", "is given as shell text and as arguments; give one of them")
	case len(argv) > MaxArgs:
		k.bad("command", "has %d arguments, more than %d", len(argv), MaxArgs)
	case len(argv) > 0 && argv[0] == "":
		k.bad("command", "names no program: the first argument is empty")
	}
	total := len(shell)
	nul := strings.IndexByte(shell, 0) >= 0
	for _, a := range argv {
		total += len(a)
		nul = nul || strings.IndexByte(a, 0) >= 0
	}
	if total > MaxCommand {
		k.bad("command", "has %d bytes, more than %d; put it into a file and run that", total, MaxCommand)
	}
	if nul {
		k.bad("command", "holds a NUL byte")
	}
}

// cwd checks a working directory of user's and makes it absolute. Where none is asked for,
// root's is its home: the user writes in the workspace, and programs run what lies where
// they start.
func (k *check) cwd(dir, user string) string {
	if dir == "" {
		if user == userRoot {
			return sandbox.RootHome
		}
		return sandbox.Workspace
	}
	k.path("cwd", dir)
	if !path.IsAbs(dir) {
		dir = path.Join(sandbox.Workspace, dir)
	}
	return path.Clean(dir)
}

func (k *check) path(field, p string) {
	switch {
	case p == "":
		k.bad(field, "is empty")
	case len(p) > MaxPath:
		k.bad(field, "has %d bytes, more than %d (it starts with %q)", len(p), MaxPath, sandbox.Clip(p, 40))
	case strings.IndexByte(p, 0) >= 0:
		k.bad(field, "holds a NUL byte")
	}
}

func (k *check) timeout(field string, d, most time.Duration) {
	if d < 0 || d > most {
		k.bad(field, "%s is outside 0 to %s seconds", seconds(d), seconds(most))
	}
}

func (k *check) bytes(field string, n, most int64) {
	if n < 0 || n > most {
		k.bad(field, "%d is outside 0 to %d bytes", n, most)
	}
}

// user checks who a command or a file operation acts as, and fills the default.
func (e *Engine) user(k *check, u string) (string, error) {
	switch u {
	case "", userSandbox:
		return userSandbox, nil
	case userRoot:
		if e.defaults.ForbidRoot {
			return "", fault.New(fault.Denied, "this server does not let anything act as root in its sandboxes").
				WithRemedy("leave as_user out, to act as %q", userSandbox)
		}
		return userRoot, nil
	}
	k.bad("as_user", "%q is neither %q nor %q", sandbox.Clip(u, 40), userSandbox, userRoot)
	return "", nil
}

const (
	userSandbox = "sandbox"
	userRoot    = "root"
)
