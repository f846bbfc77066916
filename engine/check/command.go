// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path"
	"strings"
	"unicode"

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

// Cwd checks a working directory of user's. What is relative is to the directory of the sandbox's account.
// Where none is asked for, root's is its home: the user writes in that directory, and programs run what lies
// where they start.
func (k *Fields) Cwd(dir, user string) string {
	if dir == "" {
		if user == sandbox.UserRoot || user == "0" {
			return sandbox.RootHome
		}
		return "."
	}
	k.Path("cwd", dir)
	return path.Clean(dir)
}

// User checks who a command or a file operation acts as, and fills in the default. Root, where
// forbidRoot is set, is fault.Denied. Any other name is for the sandbox's list of accounts to know: the
// agent finds who has it, and its number.
func (k *Fields) User(user string, forbidRoot bool) (string, error) {
	switch {
	case user == "", user == sandbox.UserSandbox:
		return sandbox.UserSandbox, nil
	case user == sandbox.UserRoot, user == "0":
		if forbidRoot {
			return "", NoRoot()
		}
		return sandbox.UserRoot, nil
	case len(user) > sandbox.MaxAccountName || !Plain(user) || strings.ContainsAny(user, " /:") || strings.ContainsFunc(user, func(r rune) bool { return r > unicode.MaxASCII }):
		k.Bad("as_user", "%q is not a valid name of an account: it has at most %d printable characters of ASCII, without a space, a slash and a colon", sandbox.Clip(user, 40), sandbox.MaxAccountName)
		return "", nil
	}
	return user, nil
}
