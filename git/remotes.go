// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sandpit.dev/access"
	"sandpit.dev/engine/check"
	"sandpit.dev/fault"
)

// RemoteRepository is a repository elsewhere that a repository knows.
type RemoteRepository struct {
	Name    string
	URL     string // without a password
	PushURL string // empty: the same
}

// AddRemoteRequest asks that a repository know another.
type AddRemoteRequest struct {
	At
	Name      string
	URL       string // what [ReadAddress] takes, without credentials
	Overwrite bool   // give one that is there this address
}

// RemoveRemoteRequest asks that it know it no longer.
type RemoveRemoteRequest struct {
	At
	Name string
}

// DefaultRemote is the remote of a request that names none.
const DefaultRemote = "origin"

// remoteName is what a remote may be called: it stands in keys of the configuration and in arguments.
var remoteName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}){0,3}$`)

func checkRemote(k *check.Fields, field, name string) {
	if !remoteName.MatchString(name) || notInBranch.MatchString(name) {
		k.Bad(field, "%q is not a valid name of a remote: letters, digits, dots, dashes, underscores and slashes", shown(name))
	}
}

// Remotes lists the remotes, by name.
func (s *Service) Remotes(ctx context.Context, c access.Caller, ref string, at At) ([]RemoteRepository, error) {
	var k check.Fields
	j, err := s.begin(&k, c, ref, at, "listing remotes")
	if err != nil {
		return nil, err
	}
	if _, err := j.run(ctx, command{args: []string{"rev-parse", "--git-dir"}}); err != nil {
		return nil, err
	}
	out, err := j.run(ctx, command{args: []string{"config", "--null", "--get-regexp", `^remote\..*\.(url|pushurl)$`}, most: maxBytes})
	if f := failureOf(err); f != nil && f.ExitCode == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseRemotes(out.text), nil
}

// AddRemote adds a remote.
func (s *Service) AddRemote(ctx context.Context, c access.Caller, ref string, r AddRemoteRequest) (RemoteRepository, error) {
	var k check.Fields
	checkRemote(&k, "name", r.Name)
	a, user, password, err := ReadAddress(r.URL)
	k.Add(err)
	if password != "" || user != "" {
		k.Bad("url", "has a user or a password in it, which would stay in the repository; give them to push and pull")
	}
	j, err := s.begin(&k, c, ref, r.At, "adding the remote "+shown(r.Name))
	if err != nil {
		return RemoteRepository{}, err
	}
	_, err = j.run(ctx, command{args: []string{"remote", "add", "--", r.Name, a.Text}})
	if r.Overwrite && fault.Of(err) == fault.Exists {
		_, err = j.run(ctx, command{args: []string{"remote", "set-url", "--", r.Name, a.Text}})
	}
	return RemoteRepository{Name: r.Name, URL: a.Text}, err
}

// RemoveRemote removes a remote, with what is known of its branches.
func (s *Service) RemoveRemote(ctx context.Context, c access.Caller, ref string, r RemoveRemoteRequest) error {
	var k check.Fields
	checkRemote(&k, "name", r.Name)
	j, err := s.begin(&k, c, ref, r.At, "removing the remote "+shown(r.Name))
	if err != nil {
		return err
	}
	_, err = j.run(ctx, command{args: []string{"remote", "remove", "--", r.Name}})
	return err
}

// parseRemotes reads keys and values of the configuration: each key ends with a line break, each value with a NUL.
func parseRemotes(text string) []RemoteRepository {
	var all []RemoteRepository
	at := map[string]int{}
	for entry := range strings.SplitSeq(text, "\x00") {
		key, value, ok := strings.Cut(entry, "\n")
		// A name may have line breaks, which git does not escape: such a one is left out.
		rest, isRemote := strings.CutPrefix(key, "remote.")
		i := strings.LastIndexByte(rest, '.')
		if !ok || !isRemote || i <= 0 {
			continue
		}
		name, what := nameText(rest[:i]), rest[i+1:]
		if what != "url" && what != "pushurl" {
			continue
		}
		n, known := at[name]
		if !known {
			if len(all) == maxRemotes {
				continue
			}
			n = len(all)
			at[name] = n
			all = append(all, RemoteRepository{Name: name})
		}
		if what == "url" && all[n].URL == "" { // git takes the first one
			all[n].URL = shownAddress(value)
		} else if what == "pushurl" && all[n].PushURL == "" {
			all[n].PushURL = shownAddress(value)
		}
	}
	slices.SortFunc(all, func(a, b RemoteRepository) int { return strings.Compare(a.Name, b.Name) })
	return all
}

const maxRemotes = 1000

// shownAddress is an address as it is shown: without a password.
func shownAddress(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if u, err := url.Parse(text); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.User(u.User.Username())
			text = u.String()
		}
	} else if scheme, rest, ok := strings.Cut(text, "://"); err != nil && ok { // what cannot be read may have a password
		text = scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
	}
	return printable(text)
}
