// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package redactlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"sandpit.dev/redact"
)

func TestALogIsRedactedWhateverItIsGiven(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		var h slog.Handler = slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
		if format == "json" {
			h = slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})
		}
		l := New()
		log := slog.New(l.Handler(h))
		log.Info("first", "n", 7)
		l.Add(redact.Secret{Name: "A", Value: "hunter22"})
		log.With("with", "hunter22").WithGroup("g").Debug("the hunter22",
			"text", "a hunter22", "error", fmt.Errorf("no: %w", errors.New("hunter22")), "list", []string{"hunter22"},
			"group", slog.GroupValue(slog.String("in", "hunter22")), "n", 12345)
		got := out.String()
		if strings.Contains(got, "hunter22") || strings.Count(got, "[secret A]") != 6 {
			t.Errorf("%s: %s", format, got)
		}
		if !strings.Contains(got, "12345") || !strings.Contains(got, "first") {
			t.Errorf("%s lost what is no secret: %s", format, got)
		}
	}
}

func TestALogForgetsTheOldestValuesFirst(t *testing.T) {
	l := New()
	size := 16 << 10
	value := func(i int) string { return strconv.Itoa(1_000_000+i) + strings.Repeat("x", size-7) }
	for i := range 3 * maxKnown / size {
		l.Add(redact.Secret{Name: "S", Value: value(i)})
		l.Add(redact.Secret{Name: "S", Value: value(i)})
	}
	if l.size > maxKnown || len(l.order) != maxKnown/size || len(l.have) != len(l.order) {
		t.Errorf("%d bytes of %d values (%d) are kept, want at most %d", l.size, len(l.order), len(l.have), maxKnown)
	}
	if v := value(0); l.known.String(v) != v {
		t.Error("the oldest is known yet")
	}
	if got := l.known.String(value(3*maxKnown/size - 1)); got != "[secret S]" {
		t.Errorf("the newest is not known: %.40s", got)
	}
}
