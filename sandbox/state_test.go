// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/sandbox"
)

var update = flag.Bool("update", false, "write the diagram anew")

func TestTheStateTable(t *testing.T) {
	states := sandbox.States()
	for i, s := range states {
		if !s.Valid() || slices.Contains(states[:i], s) {
			t.Errorf("%s is no state, or stands twice", s)
		}
		if s.CanBecome(s) {
			t.Errorf("%s becomes itself", s)
		}
		if strings.HasSuffix(string(s), "ing") != (s.Intent() || s == sandbox.Running) {
			t.Errorf("%s: its name does not say whether it is an intent", s)
		}
		for _, next := range s.Next() {
			if !slices.Contains(states, next) {
				t.Errorf("%s can become %s, which is not listed", s, next)
			}
			if s.Intent() && next.Intent() && next != sandbox.Deleting {
				t.Errorf("%s can become %s: an intent ends before another begins, but for a delete", s, next)
			}
		}
		if s != sandbox.Deleted && s != sandbox.Deleting && !s.CanBecome(sandbox.Deleting) {
			t.Errorf("%s cannot be deleted", s)
		}
	}
	if next := sandbox.Deleted.Next(); len(next) > 0 {
		t.Errorf("there is something after the end: %v", next)
	}
	reached := map[sandbox.State]bool{sandbox.Creating: true}
	for range states {
		for s := range reached {
			for _, next := range s.Next() {
				reached[next] = true
			}
		}
	}
	for _, s := range states {
		if !reached[s] {
			t.Errorf("nothing ever becomes %s", s)
		}
	}
	if sandbox.State("asleep").Valid() {
		t.Error("anything is a state")
	}
}

// What lies between these lines of the page is the table.
const (
	page  = "../docs/lifecycle.md"
	begin = "<!-- the state table, printed by sandbox/state_test.go -->\n"
	end   = "<!-- end of the state table -->\n"
)

func TestThePageShowsTheTable(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(data), begin)
	shown, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", page)
	}
	want := "```text\n" + diagram() + "```\n"
	if shown == want {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s shows another table (go test ./sandbox -update writes it anew):\n%s", page, want)
}

// diagram draws the table: a line for each state, with its arrows. Intents are in
// brackets.
func diagram() string {
	name := func(s sandbox.State) string {
		if s.Intent() {
			return "[" + string(s) + "]"
		}
		return string(s)
	}
	width := 0
	for _, s := range sandbox.States() {
		width = max(width, len(name(s)))
	}
	var b strings.Builder
	for _, s := range sandbox.States() {
		next := s.Next()
		if len(next) == 0 {
			fmt.Fprintf(&b, "%-*s  (the end)\n", width, name(s))
			continue
		}
		for i, n := range next {
			switch {
			case len(next) == 1:
				fmt.Fprintf(&b, "%-*s ──▶ %s\n", width, name(s), name(n))
			case i == 0:
				fmt.Fprintf(&b, "%-*s ─┬▶ %s\n", width, name(s), name(n))
			case i == len(next)-1:
				fmt.Fprintf(&b, "%*s  └▶ %s\n", width, "", name(n))
			default:
				fmt.Fprintf(&b, "%*s  ├▶ %s\n", width, "", name(n))
			}
		}
	}
	return b.String()
}
