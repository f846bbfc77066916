// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/sandbox"
)

// PushRequest asks that a server have what a branch has.
type PushRequest struct {
	At
	Remote
	Name        string // of the remote; empty: origin
	URL         string // that the remote has to be at; empty: anywhere
	Branch      string // empty: the one that is checked out
	To          string // its name at the server; empty: the same
	SetUpstream bool
	Force       bool // whatever the server has
	Delete      bool // delete the branch at the server
	Tags        bool // all tags, too
	// SkipHooks leaves out the hook that git runs before. With credentials none runs.
	SkipHooks bool
	Progress  func([]byte)
}

// Pushed is what a server did.
type Pushed struct {
	Remote string
	URL    string // without credentials
	Refs   []PushedRef
}

// PushedRef is what became of one name at the server.
type PushedRef struct {
	Name   string // as refs/heads/main
	State  PushState
	Detail string // in git's words
}

// PushState says what became of a name.
type PushState string

// The states.
const (
	PushCreated  PushState = "created"
	PushUpdated  PushState = "updated"
	PushForced   PushState = "forced"
	PushDeleted  PushState = "deleted"
	PushCurrent  PushState = "up_to_date"
	PushRejected PushState = "rejected"
	PushRefused  PushState = "refused" // by the server
)

// Push pushes a branch.
func (s *Service) Push(ctx context.Context, c access.Caller, ref string, r PushRequest) (Pushed, error) {
	var k check.Fields
	if r.Name == "" {
		r.Name = DefaultRemote
	}
	checkRemote(&k, "remote", r.Name)
	for field, name := range map[string]string{"branch": r.Branch, "to": r.To} {
		if name != "" {
			checkBranch(&k, field, name)
		}
	}
	if r.Delete && (r.Branch == "" || r.To != "" || r.SetUpstream) {
		k.Bad("delete", "goes with branch, and neither with to nor with set_upstream")
	}
	url, user, password := checkURL(&k, r.URL)
	l := r.read(&k, user, password)
	j, err := s.begin(&k, c, ref, r.At, "pushing")
	if err != nil {
		return Pushed{}, err
	}
	to, err := j.remote(ctx, r.Name, url, true, &r.Remote, l)
	if err != nil {
		return Pushed{}, err
	}
	if r.Branch == "" {
		if r.Branch, err = j.branch(ctx); err != nil {
			return Pushed{}, err
		}
	}
	if r.To == "" {
		r.To = r.Branch
	}
	args := []string{"push", "--porcelain", "--no-recurse-submodules", "--no-signed"}
	for _, o := range []struct {
		on   bool
		name string
	}{{r.SetUpstream, "--set-upstream"}, {r.Force, "--force"}, {r.Tags, "--tags"}, {r.SkipHooks || to.login != (login{}), "--no-verify"}} {
		if o.on {
			args = append(args, o.name)
		}
	}
	spec := "refs/heads/" + r.Branch + ":refs/heads/" + r.To
	if r.Delete {
		spec = ":refs/heads/" + r.Branch
	}
	cmd := command{args: append(args, "--", r.Name, spec), reach: to, hooks: !r.SkipHooks, most: maxBytes}
	if r.Progress != nil {
		cmd.sink = func(f sandbox.Frame) { r.Progress(f.Data) }
	}
	out, err := j.run(ctx, cmd)
	p := Pushed{Remote: r.Name, URL: to.a.Text, Refs: parsePush(out.text)}
	if err == nil {
		return p, nil
	}
	for _, x := range p.Refs { // they say more than the message
		switch x.State {
		case PushRejected:
			return p, j.told(rejected, "%s was rejected: %s", x.Name, x.Detail)
		case PushRefused:
			if strings.Contains(x.Detail, "remote ref does not exist") {
				return p, j.told(noBranch, "%s: %s", x.Name, x.Detail)
			}
			m := refused
			return p, j.told(m, "the server refused %s: %s%s", x.Name, x.Detail, remoteWords(failureOf(err)))
		}
	}
	return p, err
}

// remoteWords returns what a server says itself, as it is shown after a message.
func remoteWords(f *Failure) string {
	if f == nil {
		return ""
	}
	var b strings.Builder
	for line := range strings.Lines(f.Said) {
		if words, ok := strings.CutPrefix(line, "remote:"); ok && strings.TrimSpace(words) != "" {
			b.WriteString("\nremote: " + strings.TrimSpace(words))
		}
	}
	return b.String()
}

// parsePush reads what push prints for programs: a flag, both names and a summary on each line.
func parsePush(text string) []PushedRef {
	var all []PushedRef
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		f := strings.SplitN(line, "\t", 3)
		if !whole || len(f) != 3 || len(f[0]) != 1 {
			continue
		}
		_, name, ok := strings.Cut(f[1], ":")
		if !ok || name == "" || len(all) == maxList {
			continue
		}
		p := PushedRef{Name: nameText(name), Detail: sandbox.Clip(printable(strings.ToValidUTF8(f[2], "\ufffd")), maxSaid)}
		switch f[0][0] {
		case ' ':
			p.State = PushUpdated
		case '+':
			p.State = PushForced
		case '-':
			p.State = PushDeleted
		case '*':
			p.State = PushCreated
		case '=':
			p.State = PushCurrent
		case '!':
			if p.State = PushRejected; strings.HasPrefix(f[2], "[remote ") {
				p.State = PushRefused
			}
		default:
			continue
		}
		all = append(all, p)
	}
	return all
}
