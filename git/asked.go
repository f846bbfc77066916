// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"

	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
)

// remote asks which server a remote is on, and returns how it is asked. url, unless it is empty, is the address
// that it has to be: who gives credentials may say so, since the configuration is the sandbox's.
func (j *job) remote(ctx context.Context, name, url string, push bool, r *Remote, l login) (*reach, error) {
	args := []string{"remote", "get-url"}
	if push {
		args = append(args, "--push")
	}
	if _, err := j.run(ctx, command{args: []string{"rev-parse", "--git-dir"}}); err != nil {
		return nil, err
	}
	out, err := j.run(ctx, command{args: append(args, "--", name)})
	if f := failureOf(err); f != nil && f.Cause == "" && fault.ReasonOf(err) != ReasonMissing {
		return nil, j.told(noRemote, "there is no remote %s", shown(name))
	}
	if err != nil {
		return nil, err
	}
	text, _, _ := strings.Cut(out.text, "\n")
	text = strings.TrimPrefix(text, "file://")
	a, user, password, err := ReadAddress(text)
	if err != nil {
		return nil, j.told(meaning{"", fault.State, "give the remote another address"}, "the address of the remote %s is refused: %s", shown(name), fault.As(err).Message)
	}
	if url != "" && strings.TrimSuffix(a.Text, "/") != strings.TrimSuffix(url, "/") {
		return nil, j.told(meaning{"", fault.State, "see the remotes; nothing was sent"}, "the remote %s is %s, and not %s", shown(name), shown(a.Text), shown(url))
	}
	if l == (login{}) && password != "" {
		l = login{user, password} // they are in the configuration; git may show them
	}
	var k check.Fields
	l.fits(&k, "remote", &a)
	if l != (login{}) && strings.Contains(user, "=") {
		k.Bad("remote", "has a user with an = in its address, and credentials are told to no such address")
	}
	if err := k.Err(); err != nil {
		return nil, err
	}
	to := &reach{a: &a, login: l, ca: r.CA, insecure: r.InsecureTLS, name: name, user: user}
	return to, j.silence(ctx, to)
}

// checkURL checks the address that a remote has to be, and returns it without credentials.
func checkURL(k *check.Fields, text string) (url, user, password string) {
	if text == "" {
		return "", "", ""
	}
	a, user, password, err := ReadAddress(text)
	k.Add(err)
	return a.Text, user, password
}
