// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	v1 "sandpit.dev/api/v1"
)

func TestTopShowsTheMostFirstWithinThePage(t *testing.T) {
	l := &v1.StatsList{
		Total: v1.StatsTotal{Sandboxes: 50, CPUs: new(12.5), MemoryBytes: new(int64(3 << 30)), Tasks: new(int64(99))},
		Host:  &v1.HostStats{CPULimit: 16, MemoryLimit: 64 << 30, TaskLimit: 32768, Now: v1.StatsSample{MemoryBytes: new(int64(9 << 30))}},
	}
	for n := range 50 {
		s := v1.SandboxStats{ID: fmt.Sprintf("box%02d", n), Status: "running", Project: "web", CPULimit: 1, MemoryLimit: 1 << 30, TaskLimit: 256}
		if n != 7 { // which counts nothing
			s.Now = &v1.StatsSample{CPUs: new(float64(n%25) / 25), MemoryBytes: new(int64(50-n) << 20)}
		}
		l.Items = append(l.Items, s)
	}
	l.Items[3].Key = new("\x1b[2Jevil")
	for by, first := range map[string]string{"cpu": "box24", "memory": "box00", "disk": "box00"} {
		var b bytes.Buffer
		if err := writeTop(&b, l, true, orders[by], 70, 12); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) > 12 || !strings.HasPrefix(lines[5], first+" ") {
			t.Errorf("by %s: %d lines, the first is %q", by, len(lines), lines[5])
		}
		drawn := redraw(b.String(), 70)
		for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(drawn, "\x1b[H"), "\x1b[J"), "\x1b[K\r\n") {
			if utf8.RuneCountInString(line) > 70 || strings.ContainsAny(line, "\x1b\n") {
				t.Errorf("by %s: a screen of 70 columns gets %q", by, line)
			}
		}
	}
	var b bytes.Buffer
	if err := writeTop(&b, l, false, orders["cpu"], 0, 0); err != nil {
		t.Fatal(err)
	}
	all := b.String()
	if strings.Count(all, "\n") != 3+1+1+50 || strings.Contains(all, "\x1b") || !strings.Contains(all, "50 sandboxes") || !strings.Contains(all, "9.0 GiB of 64.0 GiB") {
		t.Errorf("got %s", all)
	}
	if lines := strings.Split(all, "\n"); !strings.HasPrefix(lines[len(lines)-2], "box07") {
		t.Errorf("the last is %q", lines[len(lines)-2])
	}
}
