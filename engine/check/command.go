// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path"
	"strings"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of a command.
const (
	MaxEnv      = 256       // variables
	MaxEnvName  = 255       // bytes
	MaxEnvValue = 32 << 10  // bytes
	MaxEnvTotal = 128 << 10 // bytes of names and values together
	MaxCommand  = 128 << 10 // bytes of shell text, or of all arguments together
	MaxArgs     = 1024      // arguments
)

// Env checks variables.
func (k *Fields) Env(env map[string]string) { k.EnvIn("env", env) }

// EnvIn is Env of another field.
func (k *Fields) EnvIn(field string, env map[string]string) {
	if len(env) > MaxEnv {
		k.Bad(field, "has %d variables, more than %d", len(env), MaxEnv)
		return
	}
	total := 0
	for n, v := range env {
		total += len(n) + len(v)
		switch {
		case !validEnvName(n):
			k.Bad(field, "%q is not a valid variable name: a letter or _, then letters, digits and _, at most %d", sandbox.Clip(n, 80), MaxEnvName)
		case len(v) > MaxEnvValue:
			k.Bad(field, "the value of %s has %d bytes, more than %d", n, len(v), MaxEnvValue)
		case strings.ContainsRune(v, 0):
			k.Bad(field, "the value of %s holds a NUL byte", n)
		}
	}
	if total > MaxEnvTotal {
		k.Bad(field, "has %d bytes in all, more than %d", total, MaxEnvTotal)
	}
}

// EnvName refuses what is no name of a variable.
func (k *Fields) EnvName(field, name string) {
	if !validEnvName(name) {
		k.Bad(field, "%q is not a valid variable name: a letter or _, then letters, digits and _, at most %d", sandbox.Clip(name, 80), MaxEnvName)
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

// Command checks shell text or a program with its arguments, exactly one of the two.
func (k *Fields) Command(shell string, argv []string) {
	switch {
	case shell == "" && len(argv) == 0:
		k.Bad("command", "is empty")
	case shell != "" && len(argv) > 0:
		k.Bad("command", "is given as shell text and as arguments; give one of them")
	case len(argv) > MaxArgs:
		k.Bad("command", "has %d arguments, more than %d", len(argv), MaxArgs)
	case len(argv) > 0 && argv[0] == "":
		k.Bad("command", "names no program: the first argument is empty")
	}
	total := len(shell)
	nul := strings.IndexByte(shell, 0) >= 0
	for _, a := range argv {
		total += len(a)
		nul = nul || strings.IndexByte(a, 0) >= 0
	}
	if total > MaxCommand {
		k.Bad("command", "has %d bytes, more than %d; put it into a file and run that", total, MaxCommand)
	}
	if nul {
		k.Bad("command", "holds a NUL byte")
	}
}

// Cwd checks a working directory of user's and makes it absolute. Where none is asked for,
// root's is its home: the user writes in the workspace, and programs run what lies where
// they start.
func (k *Fields) Cwd(dir, user string) string {
	if dir == "" {
		if user == sandbox.UserRoot {
			return sandbox.RootHome
		}
		return sandbox.Workspace
	}
	k.Path("cwd", dir)
	if !path.IsAbs(dir) {
		dir = path.Join(sandbox.Workspace, dir)
	}
	return path.Clean(dir)
}

// User checks who a command or a file operation acts as, and fills in the default. Root, where
// forbidRoot is set, is fault.Denied.
func (k *Fields) User(user string, forbidRoot bool) (string, error) {
	switch user {
	case "", sandbox.UserSandbox:
		return sandbox.UserSandbox, nil
	case sandbox.UserRoot:
		if forbidRoot {
			return "", fault.New(fault.Denied, "this server does not let anything act as root in its sandboxes").
				WithRemedy("leave as_user out, to act as %q", sandbox.UserSandbox)
		}
		return sandbox.UserRoot, nil
	}
	k.Bad("as_user", "%q is neither %q nor %q", sandbox.Clip(user, 40), sandbox.UserSandbox, sandbox.UserRoot)
	return "", nil
}
