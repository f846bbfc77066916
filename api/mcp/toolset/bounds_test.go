// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"encoding/json"
	"testing"
	"time"

	"sandpit.dev/access/project"
)

func TestABudgetSaysWhatIsLeft(t *testing.T) {
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	use := project.Amounts{project.CPUSeconds: 77.5, project.MemorySeconds: 10}
	for _, c := range []struct {
		quotas     project.Amounts
		json, text string
	}{
		{project.Amounts{project.Running: 3}, `null`, "no budget"},
		{
			project.Amounts{project.CPUSeconds: 60}, `{"vcpu_seconds":{"limit":60,"used":77.5,"left":0},"gib_seconds":null,"resets_at":"2026-12-01T00:00:00Z"}`,
			"budget left until 2026-12-01T00:00:00Z: 0 of 60 vCPU-seconds",
		},
		{
			project.Amounts{project.CPUSeconds: 100, project.MemorySeconds: 10.5},
			`{"vcpu_seconds":{"limit":100,"used":77.5,"left":22.5},"gib_seconds":{"limit":10.5,"used":10,"left":0.5},"resets_at":"2026-12-01T00:00:00Z"}`,
			"budget left until 2026-12-01T00:00:00Z: 22.5 of 100 vCPU-seconds, 0.5 of 10.5 GiB-seconds",
		},
	} {
		b := budgetOf(c.quotas, use, end)
		data, err := json.Marshal(b)
		if err != nil || string(data) != c.json {
			t.Errorf("got %s (%v), want %s", data, err, c.json)
		}
		if got := b.String(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
	}
}
