// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// Bounds of what a request may have.
const (
	maxAddress = 2048 // bytes
	maxName    = 255  // of a branch
)

// An Address is one of a repository, checked, without credentials.
type Address struct {
	Text string
	// Host is the remote server's name, "" for a path inside.
	Host string
	// scheme and authority are of what asks by HTTP who one is.
	scheme, authority string
}

// http reports whether the server asks by HTTP who one is.
func (a *Address) http() bool { return a.scheme == "http" || a.scheme == "https" }

// protocols are the transports that git may use for it.
func (a *Address) protocols() string {
	if a.Host == "" {
		return "file"
	}
	return "http:https:ssh:git"
}

var (
	helper   = regexp.MustCompile(`^[^/]*::`)           // NAME::ADDRESS has git run git-remote-NAME
	hostPath = regexp.MustCompile(`^([^/:]+@)?[^/:]+:`) // as ssh takes it
	// plainHost is what a host may be written in: it stands within options of git's.
	plainHost = regexp.MustCompile(`^[A-Za-z0-9._:\[\]-]+$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9_][\w.+-]*$`) // of a directory that is made of an address
)

// ReadAddress reads the address of a repository. A user and a password within that of an HTTP server are
// taken out of it and returned. An error is about the field url.
func ReadAddress(text string) (a Address, user, password string, err error) {
	bad := func(format string, args ...any) (Address, string, string, error) {
		return Address{}, "", "", fault.InvalidField("url", format, args...).
			WithRemedy("give an address of the kind https://HOST/PATH or ssh://HOST/PATH, or a path inside the sandbox")
	}
	switch {
	case text == "":
		return bad("is empty; name a repository")
	case len(text) > maxAddress:
		return bad("has %d bytes, more than %d", len(text), maxAddress)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable):
		return bad("is not a valid address of a repository: it has a character that does not print")
	case strings.HasPrefix(text, "-"):
		return bad("%q is not a valid address of a repository: it begins with a hyphen, as an option", shown(text))
	case helper.MatchString(text):
		return bad("%q is not a valid address of a repository: it names a program that git would run", shown(text))
	}
	if !strings.Contains(text, "://") {
		a.Text = text
		if m := hostPath.FindString(text); m != "" && !strings.HasPrefix(text, ".") {
			_, host, _ := strings.Cut("@"+m, "@")
			if i := strings.LastIndexByte(host, '@'); i >= 0 {
				host = host[i+1:]
			}
			if a.Host = strings.TrimSuffix(host, ":"); !plainHost.MatchString(a.Host) || strings.HasPrefix(a.Host, "-") {
				return bad("%q is not a valid address of a repository: it names no host in letters, digits, dots and hyphens", shown(text))
			}
		}
		return a, "", "", nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return bad("is not a valid address of a repository") // the error would show what is in it
	}
	switch u.Scheme {
	case "http", "https", "ssh", "git":
	case "file":
		return bad("is a file: write a path inside the sandbox as it is, such as /mnt/app")
	default:
		return bad("%q is not a way to a repository: use https, http, ssh, git or a path inside the sandbox", shown(u.Scheme))
	}
	if u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") || !plainHost.MatchString(u.Host) {
		return bad("is not a valid address of a repository: it names no host in letters, digits, dots and hyphens")
	}
	a.Host, a.scheme, a.authority = u.Hostname(), u.Scheme, u.Host
	if u.User != nil {
		password, has := u.User.Password()
		switch {
		case a.http():
			user, u.User = u.User.Username(), nil // it would stay in the repository's configuration
			a.Text = u.String()
			return a, user, password, nil
		case has:
			return bad("has a password in it, which ssh and git do not take")
		case strings.HasPrefix(u.User.Username(), "-"):
			return bad("is not a valid address of a repository: its user begins with a hyphen")
		}
	}
	a.Text = text
	return a, "", "", nil
}

// dirName is the directory that git would make of an address, "" where that is no plain name.
func (a *Address) dirName() string {
	p := a.Text
	if a.scheme != "" {
		if u, err := url.Parse(p); err == nil {
			p = u.Path
		}
	} else if a.Host != "" {
		_, p, _ = strings.Cut(p, ":")
	}
	name := strings.TrimSuffix(path.Base(strings.TrimRight(strings.TrimSuffix(strings.TrimRight(p, "/"), "/.git"), "/")), ".git")
	if !plainName.MatchString(name) || len(name) > maxName {
		return ""
	}
	return name
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func shown(s string) string { return sandbox.Clip(s, 80) }
