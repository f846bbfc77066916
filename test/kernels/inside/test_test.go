// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestTheSummaryKeepsWhatAFailedTestSaid(t *testing.T) {
	got := summary("=== RUN   TestA\n    a_test.go:1: fine\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:2: the reason\n" +
		"--- FAIL: TestB (0.10s)\n    --- SKIP: TestB/In (0.00s)\nFAIL\n")
	if got.passed != 1 || got.failed != 1 || got.skipped != 1 {
		t.Errorf("got %s", got.words())
	}
	if !strings.Contains(got.failures, "the reason") || strings.Contains(got.failures, "fine") {
		t.Errorf("got %q, want what TestB said and nothing else", got.failures)
	}
	if got := summary("panic: test timed out after 1s\ngoroutine 1\n"); !strings.Contains(got.failures, "timed out") {
		t.Errorf("got %q, want the panic", got.failures)
	}
}

func TestVerdictsArePassedOnAsTheyCome(t *testing.T) {
	var to bytes.Buffer
	v := verdicts{to: &to}
	const out = "=== RUN   TestA\n    --- PASS: TestA/In (0.00s)\n--- PASS: TestA (0.00s)\n    a word\n--- FAIL: TestB (0.10s)\nFAIL\n"
	for i := range len(out) { // cut anywhere
		if n, err := v.Write([]byte(out[i : i+1])); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if got, want := to.String(), "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.10s)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if v.all.String() != out {
		t.Errorf("kept %q", v.all.String())
	}
}
