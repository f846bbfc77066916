// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

import "testing"

func TestWhatOutcomeIsWanted(t *testing.T) {
	for _, test := range []struct {
		got    string
		wanted []string
		is     bool
	}{
		{"DONE", []string{"DONE"}, true}, {"DONE", []string{"REFUSED EPERM", "DONE"}, true}, {"DONE", []string{"DON"}, false},
		{"MIXED a: DONE, b: REFUSED EPERM", []string{"DONE", "REFUSED EPERM"}, true}, {"MIXED a: DONE, b: REFUSED EPERM", []string{"REFUSED EPERM"}, false},
		{"/tmp/x", []string{"/tmp/…"}, true}, {"/tmp/x", []string{"/var/…"}, false}, {"x/tmp/", []string{"/tmp/…"}, false}, {"/tmp", []string{"/tmp/…"}, false},
		{"a\nb", []string{"a…b"}, true}, {"9:pids:/sandpit-test-X/1, 8", []string{"NONE", "…/sandpit-test-…"}, true}, {"9:pids:/other/1", []string{"NONE", "…/sandpit-test-…"}, false},
		{"MIXED a: DONE, b: DONE", []string{"MIXED a: DONE, …"}, true}, {"MIXED a: REFUSED EPERM, b: DONE", []string{"MIXED a: DONE, …"}, false}, {"x", []string{".…"}, false},
	} {
		if got := isOneOf(test.got, test.wanted); got != test.is {
			t.Errorf("%q is one of %q: %v", test.got, test.wanted, got)
		}
	}
}
