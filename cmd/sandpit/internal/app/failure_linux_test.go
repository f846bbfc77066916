// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"testing"

	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/cmd/sandpit/internal/terminaltest"
	"sandpit.dev/fault"
)

// An error is coloured at a terminal, unless the person forbids it; what a sandbox has said in it
// colours nothing.
func TestErrorsAreColouredAtATerminalOnly(t *testing.T) {
	err := fault.New(fault.Invalid, "no \x1b[31mred").WithRemedy("look")
	const plainly = "sandpit: no \\u001b[31mred\n→ look\n"
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"nothing is set": {nil, "\x1b[31msandpit:\x1b[0m no \\u001b[31mred\r\n\x1b[36m→\x1b[0m look\r\n"},
		"NO_COLOR":       {map[string]string{"NO_COLOR": "1"}, "sandpit: no \\u001b[31mred\r\n→ look\r\n"},
		"CLICOLOR":       {map[string]string{"CLICOLOR": "0"}, "sandpit: no \\u001b[31mred\r\n→ look\r\n"},
		"a dumb one":     {map[string]string{"TERM": "dumb"}, "sandpit: no \\u001b[31mred\r\n→ look\r\n"},
	} {
		person, tty := terminaltest.Pair(t)
		a := &App{Finder: place.Finder{Getenv: func(name string) string { return c.env[name] }}, Stderr: tty}
		a.Say(err)
		var got []byte
		for b := make([]byte, 1000); len(got) < len(c.want); {
			n, rerr := person.Read(b)
			if rerr != nil {
				t.Fatal(rerr)
			}
			got = append(got, b[:n]...)
		}
		if string(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	var out bytes.Buffer
	a := &App{Stderr: &out, Finder: place.Finder{Getenv: func(string) string { return "" }}}
	if a.Say(err); out.String() != plainly {
		t.Errorf("for programs: got %q, want %q", out.String(), plainly)
	}
	out.Reset()
	a.json = true // which escapes the escape, and not what terminals take for one beside
	const asJSON = `{"error":{"code":"invalid","message":"no \\u009b31mred","remedy":"look"}}` + "\n"
	if a.Say(fault.New(fault.Invalid, "no \u009b31mred").WithRemedy("look")); out.String() != asJSON {
		t.Errorf("as JSON: got %q, want %q", out.String(), asJSON)
	}
}
