// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sandpit.dev/engine/secrets"
	"sandpit.dev/redact"
	"sandpit.dev/redact/redacttest"
)

// An answer shows what came out elsewhere, and is masked as that is: what a command printed,
// and the error that code raised.
func TestAnswersAreMaskedAsTheTableSays(t *testing.T) {
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	for i, v := range redacttest.Values(redact.Output) {
		if _, err := secrets.NewService(h.engine).SetSecret(t.Context(), callers["t-alice"], "box", secrets.Request{Name: fmt.Sprintf("S%d", i), Value: v}); err != nil {
			t.Fatal(err)
		}
	}
	shown := func(answer string) string {
		const begin, end = "<begin> [", "] <end>"
		from, to := strings.Index(answer, begin), strings.LastIndex(answer, end)
		if from < 0 || to < from {
			t.Fatalf("the answer has no such text: %q", answer)
		}
		return answer[from : to+len(end)]
	}
	for name, show := range map[redact.Place]func(text string) string{
		redact.Output: func(text string) string {
			return ok(t, s, "run_command", arguments{"sandbox": "box", "command": "cat", "stdin": text})
		},
		redact.Code: func(t2 string) string {
			return text(t, call(t, s, "run_code", arguments{"sandbox": "box", "language": "python", "code": fmt.Sprintf("raise ValueError(bytes.fromhex('%x').decode())", t2)}))
		},
	} {
		t.Run(name.String(), func(t *testing.T) {
			redacttest.Run(t, name, func(t *testing.T, text string) (string, bool) {
				if !utf8.ValidString(text) || strings.ContainsRune(text, 0) { // an answer is JSON
					return "", false
				}
				return shown(show(text)), true
			})
		})
	}
}
