// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"strings"
	"testing"

	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
)

func TestParseSignal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"SIGTERM": 15, "term": 15, "KILL": 9, "9": 9, "sigint": 2, "64": 64} {
		if got, err := process.ParseSignal(in); err != nil || int(got) != want {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "0", "65", "-1", "SIG", "SIGNOSUCH", strings.Repeat("x", 1000)} {
		if _, err := process.ParseSignal(in); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want invalid", in, err)
		}
	}
}

func TestAScreenBeginsWhereItMakesSense(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"1;31mred\r\nnext": "next", "\x1b[1;31mred": "\x1b[1;31mred", "5Hx\x1b[2J": "\x1b[2J", "\x9c\x9fü": "ü", "": "", "plain": "plain", "a\n": "",
	} {
		if got := string(process.AfterCut([]byte(in))); got != want {
			t.Errorf("%q begins as %q, want %q", in, got, want)
		}
	}
}
