// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"strings"
	"unicode"

	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// login is who asks a repository's server.
type login struct{ user, password string }

// Variables that git's helper takes a login from. They are in no command line, which is recorded, and in
// no file.
const (
	userVariable     = "SANDPIT_GIT_USER"
	passwordVariable = "SANDPIT_GIT_PASSWORD"
)

const answers = `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "$` + userVariable + `" "$` + passwordVariable + `"; }; f`

// tokenUser goes with a token: servers that take one look at no user.
const tokenUser = "git"

// login checks what a request says of who asks; user and password are those within its address.
func (r *CloneRequest) login(k *check.Fields, a *Address, user, password string) login {
	if r.Token != "" && r.Password != "" {
		k.Bad("token", "and password are both given; send one of them")
	}
	secret, field := r.Password, "password"
	if r.Token != "" {
		secret, field = r.Token, "token"
	}
	if r.Username != "" {
		user = r.Username
	}
	if secret != "" {
		password = secret
	}
	l := login{user, password}
	if l == (login{}) {
		return l
	}
	if a.Text != "" && !a.http() {
		k.Bad("url", "is not an HTTP address, and username, password and token are for those alone; leave them out")
	}
	if l.user == "" {
		l.user = tokenUser
	}
	for _, f := range []struct{ name, value string }{{"username", l.user}, {field, l.password}} {
		if len(f.value) > maxCredential {
			k.Bad(f.name, "has %d bytes, more than %d", len(f.value), maxCredential)
		}
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			k.Bad(f.name, "has a line break or another control character in it")
		}
	}
	return l
}

// options returns what has git say it to the server of an address and to no other, and sets what it says.
func (l login) options(a *Address, env map[string]string) []string {
	if l == (login{}) {
		return nil
	}
	key := "credential." + a.scheme + "://" + a.authority + ".helper="
	env[userVariable], env[passwordVariable] = l.user, l.password
	return []string{"-c", key, "-c", key + answers} // the first one takes other helpers out
}

// values are what nothing that git prints may show.
func (l login) values() [][]byte {
	if len(l.password) < sandbox.MinSecretValue { // what is so short is in any text
		return nil
	}
	return [][]byte{[]byte(l.password)}
}
