// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

func TestWhatAProcessUsesNow(t *testing.T) {
	began := time.Unix(1_000_000, 0)
	first := rates(Processes{}, []runtime.Process{
		{PID: 2, Name: "idle", Age: 100 * time.Second, MemoryBytes: 1}, {PID: 3, Name: "was busy", Age: 100 * time.Second, CPU: 50 * time.Second},
		{PID: 4, Name: "ends", Age: time.Second, CPU: time.Second}, {PID: 5, Name: "large", Age: time.Second, MemoryBytes: 1 << 30}, {PID: 6, Name: "new", MemoryBytes: 2},
	}, began)
	if got := told(first); got != "ends 1.00, was busy 0.50, large 0.00, new 0.00, idle 0.00" {
		t.Errorf("since they began: got %s", got)
	}
	second := rates(first, []runtime.Process{
		{PID: 2, Name: "idle", Age: 102 * time.Second, CPU: 3 * time.Second, MemoryBytes: 1}, {PID: 3, Name: "was busy", Age: 102 * time.Second, CPU: 50 * time.Second},
		{PID: 4, Name: "has the number", Age: time.Second / 2, CPU: time.Second / 4}, {PID: 5, Name: "large", Age: 3 * time.Second, CPU: time.Second, MemoryBytes: 1 << 30},
	}, began.Add(2*time.Second))
	if got := told(second); got != "idle 1.50, large 0.50, has the number 0.50, was busy 0.00" || second.Total != 4 {
		t.Errorf("since the reading before: got %s", got)
	}
	late := rates(first, []runtime.Process{{PID: 3, Name: "was busy", Age: 200 * time.Second, CPU: 50 * time.Second}}, began.Add(100*time.Second))
	if got := told(late); got != "was busy 0.25" {
		t.Errorf("long after: got %s", got)
	}
}

func told(p Processes) (text string) {
	for _, one := range p.Items {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s %.2f", one.Name, one.CPUs)
	}
	return text
}

// What is remembered of sandboxes that nobody asks about goes.
func TestReadingsAreForgotten(t *testing.T) {
	var r readings
	now := time.Unix(1_000_000, 0)
	for range 100 {
		r.get(sandbox.NewID(), now).last.At = now
	}
	held := r.get("other", now)
	held.last.At = now
	held.mu.Lock() // somebody reads it
	r.get(sandbox.NewID(), now.Add(2*lately))
	if len(r.of) != 2 || r.of["other"] != held {
		t.Errorf("%d are remembered, want the one that is read and the new one", len(r.of))
	}
	held.mu.Unlock()
}
