// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path"
	"strings"
	"unicode"

	"sandpit.dev/fault"
)

// Account is how a sandbox's user is called, and where it works. The zero value is the default one.
type Account struct {
	Name    string // empty: UserSandbox, and Home and Workdir are empty, too
	Home    string // $HOME, absolute
	Workdir string // where commands start and relative paths begin, absolute
	As      string // who commands run as that do not say: UserRoot; empty: the account itself
}

// Home is that of the default account.
const Home = "/home/sandbox"

// Bounds of an account.
const (
	MaxAccountName = 32
	MaxAccountPath = 1024
)

// Full is the account with what it leaves out.
func (a Account) Full() Account {
	if a.Name == "" {
		a.Name = UserSandbox
	}
	if a.Home == "" {
		a.Home = "/home/" + a.Name
	}
	if a.Workdir == "" {
		a.Workdir = Workspace
	}
	return a
}

// Normal is the account as records have it: one that is called and placed like the default one has no name.
func (a Account) Normal() Account {
	full := a.Full()
	if full.Name == UserSandbox && full.Home == Home && full.Workdir == Workspace {
		return Account{As: a.As}
	}
	return full
}

// Default reports whether the account is called and placed as that of a sandbox which asked for none.
func (a Account) Default() bool { return a.Name == "" }

// Same reports whether two accounts are called and placed alike.
func (a Account) Same(b Account) bool {
	return a.Name == b.Name && a.Home == b.Home && a.Workdir == b.Workdir
}

// Absolute is a path as it is absolute for the account.
func (a Account) Absolute(p string) string {
	if !path.IsAbs(p) {
		p = path.Join(a.Full().Workdir, p)
	}
	return path.Clean(p)
}

// User is who acts where a command asks for user.
func (a Account) User(user string) string {
	if user == "" {
		user = a.As
	}
	if user == "" || user == a.Name {
		user = UserSandbox
	}
	return user
}

// Shown is what a user is called to callers.
func (a Account) Shown(user string) string {
	if user == UserSandbox {
		return a.Full().Name
	}
	return user
}

// Check returns fault.Invalid with every field that is wrong, nil where none is.
func (a Account) Check() error {
	var wrong []fault.Field
	bad := func(field, format string, args ...any) {
		wrong = append(wrong, fault.InvalidField(field, format, args...).Fields...)
	}
	switch why := badAccountName(a.Name); {
	case a.Name == "":
	case a.Name == UserRoot:
		bad("account.name", "%q is the sandbox's root; user asks for commands that run as root", a.Name)
	case why != "":
		bad("account.name", "%q is not a valid name of an account: %s", Clip(a.Name, 80), why)
	}
	for _, d := range []struct{ field, path string }{{"account.home", a.Home}, {"account.workdir", a.Workdir}} {
		if why := badAccountDir(d.path); d.path != "" && why != "" {
			bad(d.field, "%q %s", Clip(d.path, 80), why)
		}
	}
	if a.As != "" && a.As != UserRoot && a.As != UserSandbox && a.As != a.Name {
		bad("user", "%q is neither %q nor %q", Clip(a.As, 80), a.Full().Name, UserRoot)
	}
	if len(wrong) == 0 {
		return nil
	}
	return fault.InvalidFields(wrong...)
}

func badAccountName(name string) string {
	ok := len(name) <= MaxAccountName
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c == '_' || i > 0 && (c >= '0' && c <= '9' || c == '-'))
	}
	if ok {
		return ""
	}
	return "it is 1 to 32 lower-case letters, digits, dashes and underscores, of which the first is a letter or an underscore"
}

func badAccountDir(dir string) string {
	switch {
	case !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/":
		return "is not an absolute path of a directory below /, written without . and .. and a slash at its end"
	case len(dir) > MaxAccountPath:
		return "has more than 1024 bytes"
	case strings.ContainsFunc(dir, func(r rune) bool { return r == ':' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }):
		return "holds a colon, or a character that does not print"
	}
	for _, of := range [...]struct{ dir, why string }{
		{"/proc", "is the kernel's"}, {"/sys", "is the kernel's"}, {"/dev", "is the kernel's"}, {RootHome, "is root's home"}, {"/.sandpit", "is the server's"},
	} {
		if within(dir, of.dir) {
			return of.why
		}
	}
	return ""
}

// Text is the account as a column keeps it; empty: the default one.
func (a Account) Text() string {
	if a == (Account{}) {
		return ""
	}
	return strings.Join([]string{a.Name, a.Home, a.Workdir, a.As}, "\n") // no field has a line break
}

// ParseAccount reads what Text wrote.
func ParseAccount(text string) (Account, error) {
	if text == "" {
		return Account{}, nil
	}
	f := strings.Split(text, "\n")
	if len(f) != 4 {
		return Account{}, fault.New(fault.Internal, "a record of an account has %d lines, not 4", len(f))
	}
	return Account{Name: f[0], Home: f[1], Workdir: f[2], As: f[3]}, nil
}
