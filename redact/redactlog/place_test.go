// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redactlog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"unicode/utf8"

	"sandpit.dev/redact"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/redact/redacttest"
)

func TestALogIsRedactedAsTheTableSays(t *testing.T) {
	l := redactlog.New()
	for i, v := range redacttest.Values(redact.LogLine) {
		l.Add(redact.Secret{Name: fmt.Sprintf("S%d", i), Value: v})
	}
	var out bytes.Buffer
	log := slog.New(l.Handler(slog.NewJSONHandler(&out, nil)))
	redacttest.Run(t, redact.LogLine, func(t *testing.T, text string) (string, bool) {
		if !utf8.ValidString(text) { // JSON would change it
			return "", false
		}
		out.Reset()
		log.Info(text)
		var line struct{ Msg string }
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		return line.Msg, true
	})
}
