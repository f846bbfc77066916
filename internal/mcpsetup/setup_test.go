// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"strings"
	"testing"
)

func TestEachClientIsToldWhereItsTokenIs(t *testing.T) {
	home := Server{Name: "sandpit", URL: "http://127.0.0.1:8080/mcp", Program: "sandpit"}
	away := Server{Name: "sandpit", URL: "https://box.example/mcp", Program: "sandpit", Remote: true}
	for _, c := range []struct {
		id      string
		s       Server
		written bool
		want    string
	}{
		{"claude-code", home, false, TokenByVariable}, {"claude-code", home, true, TokenWritten}, {"vscode", home, true, TokenAsked}, {"vscode", away, false, TokenAsked},
		{"claude-desktop", home, false, TokenFound}, {"claude-desktop", away, false, TokenWritten}, {"claude-desktop", home, true, TokenWritten}, {"stdio", away, true, TokenWritten},
	} {
		for _, one := range Setups(c.s, "PUT_IT_HERE", c.written) {
			if one.ID != c.id {
				continue
			}
			if one.Token != c.want {
				t.Errorf("%s, written %v: %s, not %s", c.id, c.written, one.Token, c.want)
			}
			if has := strings.Contains(one.Snippet, "PUT_IT_HERE"); has != (c.want == TokenWritten) {
				t.Errorf("%s: its token is %s, and its file is to have\n%s", c.id, one.Token, one.Snippet)
			}
			if strings.Contains(one.Link+one.Command, "PUT_IT_HERE") {
				t.Errorf("%s: a token would stand in %q or %q", c.id, one.Link, one.Command)
			}
		}
	}
	if n := len(Setups(home, "x", true)); n != len(Clients()) {
		t.Errorf("%d clients are told", n)
	}
}
