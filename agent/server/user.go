// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/server/accounts"
	"sandpit.dev/agent/server/message"
	"sandpit.dev/agent/server/view"
	"sandpit.dev/fault"
)

// view returns the view that acts for a user: the sandbox's own, its root, or an account of its list, by
// name or by number. root reports whether an account of number 0 under another name may act: the sandbox
// writes the list, so the number decides.
func (s *Server) view(user string, root bool) (view.View, error) {
	own := s.account.Load()
	if err := own.wait(); err != nil {
		return nil, err
	}
	switch user {
	case "", own.view.Identity().Name, "sandbox":
		return own.view, nil
	case "root":
		return s.rootView(user)
	}
	at, err := accounts.Root(s.o.Dir)
	if err != nil {
		return nil, err
	}
	defer unix.Close(at)
	all, err := accounts.List(at)
	if err != nil {
		return nil, err
	}
	e, ok := accounts.Find(all, user)
	switch {
	case !ok:
		return nil, s.noUser(user, all)
	case e.UID == 0 && !root:
		return nil, fault.New(fault.Denied, "user: %q is the sandbox's root by another name, and nothing acts as root here", user).
			WithRemedy("leave the user out, or use %q", own.view.Identity().Name)
	case e.UID == 0:
		return s.rootView(user)
	case int(e.UID) == own.view.Identity().UID:
		return view.Named(s.o.User, e.Name, e.Home), nil
	}
	base, err := s.rootView(user)
	if err != nil {
		return nil, err
	}
	groups, err := accounts.Groups(at, e)
	if err != nil {
		return nil, err
	}
	return view.As(base, view.Identity{
		Name: e.Name, UID: int(e.UID), GID: int(e.GID), Home: e.Home,
		Credential: &syscall.Credential{Uid: e.UID, Gid: e.GID, Groups: groups},
	}), nil
}

// rootView returns the view of the sandbox's root, through which all act who are not its own user.
func (s *Server) rootView(user string) (view.View, error) {
	if s.o.Root == nil {
		return nil, fault.New(fault.Denied, "user: %q is not allowed in this sandbox", message.Clip(user, 40)).
			WithRemedy("leave the user out, or use %q", s.account.Load().view.Identity().Name)
	}
	if v, ok := s.o.Root.(view.Starter); ok {
		if err := v.Start(); err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "nothing can run as the sandbox's root now").
				WithRemedy("stop and start the sandbox")
		}
	}
	return s.o.Root, nil
}

// toldUsers is how many accounts an error lists: the sandbox's own and root first, then those from number
// 1000 on, then those of the system.
const toldUsers = 20

func (s *Server) noUser(user string, all []accounts.Entry) error {
	return fault.InvalidField("as_user", "%q is not an account of this sandbox; there are %s", message.Clip(user, 40), s.users(all)).
		WithRemedy("use one of them, or make it inside first, as root: useradd -m NAME")
}

// users are the names of accounts, in words.
func (s *Server) users(all []accounts.Entry) string {
	names := []string{s.account.Load().view.Identity().Name, "root"}
	seen := map[string]bool{names[0]: true, "root": true}
	for _, people := range []bool{true, false} {
		for _, e := range all {
			if !seen[e.Name] && people == (e.UID >= 1000 && e.UID < 60000) {
				seen[e.Name] = true
				names = append(names, e.Name)
			}
		}
	}
	list := strings.Join(names[:min(len(names), toldUsers)], ", ")
	if more := len(names) - toldUsers; more > 0 {
		list += " and " + strconv.Itoa(more) + " more"
	}
	return list
}
