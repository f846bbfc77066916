// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seen

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sandpit.dev/access"
)

var at = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func caller(project, token string, scopes ...access.Scope) access.Caller {
	return access.Caller{Project: project, TokenID: token, Actor: "a " + token, Scopes: scopes}
}

func TestAClientIsKnownByWhatItSaysAndByItsToken(t *testing.T) {
	var l Log
	one, two := caller("a", "1"), caller("a", "2")
	l.Add(one, &Message{Name: "claude-code", Version: "2.1", Protocol: "2025-11-25", Method: "initialize", Listed: -1}, at)
	l.Add(one, &Message{Method: "tools/list", Listed: 16}, at.Add(time.Second)) // says no name: it is the same
	l.Add(one, &Message{Name: "claude-code", Version: "2.1", Method: "tools/call", Tool: "run_command", Listed: -1}, at.Add(2*time.Second))
	l.Add(two, &Message{Name: "claude-code", Version: "2.1", Method: "initialize", Listed: -1}, at.Add(3*time.Second))
	got := l.List(caller("a", "9", access.Admin))
	if len(got) != 2 || got[0].TokenID != "2" || got[1].TokenID != "1" {
		t.Fatalf("%+v", got)
	}
	c := got[1]
	if c.Listed != 16 || !c.ListedAt.Equal(at.Add(time.Second)) || c.Messages != 3 || c.Calls != 1 || c.LastTool != "run_command" || c.Protocol != "2025-11-25" || !c.First.Equal(at) || !c.Last.Equal(at.Add(2*time.Second)) {
		t.Errorf("%+v", c)
	}
}

func TestNobodySeesTheClientsOfOthers(t *testing.T) {
	var l Log
	for _, c := range []access.Caller{caller("a", "1"), caller("a", "2"), caller("b", "3")} {
		l.Add(c, &Message{Name: "x", Listed: -1}, at)
	}
	for _, c := range []struct {
		who  access.Caller
		want int
	}{
		{caller("a", "1", access.SandboxesRead), 1}, {caller("a", "1", access.Admin), 2}, {caller("b", "9", access.Admin), 1}, {caller("c", "1", access.Admin), 0},
		{caller("b", "1", access.SandboxesRead), 0}, {caller("c", "9", access.ServerAdmin), 3},
	} {
		if got := l.List(c.who); len(got) != c.want {
			t.Errorf("%s of %s, with %v, sees %d clients, not %d", c.who.Actor, c.who.Project, c.who.Scopes, len(got), c.want)
		}
	}
}

func TestWhatClientsSayIsBounded(t *testing.T) {
	var l Log
	for i := range inAll + 400 {
		l.Add(caller("a", fmt.Sprint(i/40)), &Message{Name: fmt.Sprint(strings.Repeat("n", 200), i), Version: fmt.Sprint(i, "\x1b[31m\n\xff", strings.Repeat("v", 200)), Tool: strings.Repeat("t", 200), Listed: -1}, at.Add(time.Duration(i)*time.Second))
	}
	all := l.List(caller("a", "", access.ServerAdmin))
	if len(all) > inAll {
		t.Errorf("%d are kept", len(all))
	}
	of := make(map[string]int)
	for _, c := range all {
		of[c.TokenID]++
		if most := maxWord + len("…"); len(c.Name) > most || len(c.Version) > most || len(c.LastTool) > most || strings.ContainsAny(c.Version, "\x1b\n") || !utf8.ValidString(c.Version) {
			t.Fatalf("%q %q %q", c.Name, c.Version, c.LastTool)
		}
	}
	for token, n := range of {
		if n > ofToken {
			t.Errorf("of the token %s %d are kept", token, n)
		}
	}
	if all[0].TokenID != fmt.Sprint((inAll+400-1)/40) {
		t.Errorf("who called last is %+v", all[0])
	}
}
