// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"
	"unicode/utf8"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
)

// CommitRequest asks for a commit of what is in the index.
type CommitRequest struct {
	At
	Message string
	// Author and Email say who the author and the committer are; both or none. Empty: what the configuration
	// says.
	Author, Email string
	All           bool // add what has changed of the files that git knows
	Amend         bool // in the place of the last commit, whose message stays if there is no other
	AllowEmpty    bool
	SkipHooks     bool
}

// Committed is a commit that was made.
type Committed struct {
	Commit string
	Branch string // empty: HEAD is detached
}

const (
	maxMessage = 1 << 20
	maxPerson  = 256
)

// Commit makes a commit. The hooks of the repository run as for a person who types it.
func (s *Service) Commit(ctx context.Context, c access.Caller, ref string, r CommitRequest) (Committed, error) {
	var k check.Fields
	switch {
	case len(r.Message) > maxMessage:
		k.Bad("message", "has %d bytes, more than %d", len(r.Message), maxMessage)
	case strings.TrimSpace(r.Message) == "" && !r.Amend:
		k.Bad("message", "is empty; say what the commit does")
	case !utf8.ValidString(r.Message) || strings.IndexByte(r.Message, 0) >= 0:
		k.Bad("message", "is not text")
	}
	if (r.Author == "") != (r.Email == "") {
		k.Bad("author", "and email go together; give both, or none")
	}
	for _, f := range []struct{ name, value string }{{"author", r.Author}, {"email", r.Email}} {
		checkLine(&k, f.name, f.value, maxPerson)
		if strings.ContainsAny(f.value, "<>") {
			k.Bad(f.name, "%q has a < or > in it", shown(f.value))
		}
	}
	j, err := s.begin(&k, c, ref, r.At, "committing")
	if err != nil {
		return Committed{}, err
	}
	cmd := command{args: []string{"commit", "--quiet", "--cleanup=whitespace"}, tree: true, hooks: !r.SkipHooks, env: map[string]string{}}
	if r.Author != "" {
		for _, who := range []string{"AUTHOR", "COMMITTER"} {
			cmd.env["GIT_"+who+"_NAME"], cmd.env["GIT_"+who+"_EMAIL"] = r.Author, r.Email
		}
	}
	for _, o := range []struct {
		on   bool
		name string
	}{{r.All, "--all"}, {r.Amend, "--amend"}, {r.AllowEmpty, "--allow-empty"}, {r.SkipHooks, "--no-verify"}, {r.Amend && r.Author != "", "--reset-author"}} {
		if o.on {
			cmd.args = append(cmd.args, o.name)
		}
	}
	if strings.TrimSpace(r.Message) == "" {
		cmd.args = append(cmd.args, "--no-edit")
	} else {
		cmd.args, cmd.stdin = append(cmd.args, "--file=-"), []byte(r.Message)
	}
	if _, err := j.run(ctx, cmd); err != nil {
		return Committed{}, err
	}
	var out Committed
	out.Commit, out.Branch, err = j.head(ctx)
	return out, err
}
