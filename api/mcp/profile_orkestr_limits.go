// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"

	"sandpit.dev/sandbox"
)

func orkestrLimits() tool {
	return tool{
		name: "get_sandbox_limits", title: "Sizes and limits", readOnly: true, idempotent: true,
		about:   "Report the sandbox sizes and limits there are here, what is in use, and the budget (null: nothing is metered).",
		example: `{}`,
		run:     orkestrReport,
	}
}

// orkestrReported is what there is [inf]: sizes, regions, concurrency and budget are
// what Orkestr's SDK reads of it; the rest are this server's own bounds.
type orkestrReported struct {
	Sizes       map[string]orkestrSize `json:"sizes"`
	Default     amounts                `json:"default"`
	Least       amounts                `json:"min"`
	Most        amounts                `json:"max"`
	Networks    []string               `json:"networks"`
	Regions     []string               `json:"regions"`
	Timeout     orkestrRange           `json:"timeout_seconds"`
	Command     orkestrRange           `json:"command_timeout_seconds"`
	Sandboxes   map[string]int         `json:"sandboxes"` // by status
	Concurrency orkestrConcurrency     `json:"concurrency"`
	Budget      *float64               `json:"budget"`
}

// orkestrRange is in seconds.
type orkestrRange struct {
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	Default *float64 `json:"default"` // null: none
}

type orkestrConcurrency struct {
	Running int  `json:"running"`
	Limit   *int `json:"limit"` // null: none but the host's
}

func orkestrReport(ctx context.Context, c *call) (*answer, error) {
	l, err := c.limits(ctx)
	if err != nil {
		return nil, err
	}
	return orkestrHandle(orkestrReported{
		Sizes: orkestrSizes(), Default: l.Default, Least: l.Least, Most: l.Most, Networks: l.Networks, Regions: []string{onlyRegion},
		Timeout:     orkestrRange{Min: orkestrLeastLife, Max: orkestrMostLife},
		Command:     orkestrRange{Min: leastTimeout, Max: l.MaxSeconds, Default: new(orkestrCommand(c).Seconds())},
		Sandboxes:   l.Sandboxes,
		Concurrency: orkestrConcurrency{Running: l.Sandboxes[string(sandbox.Running)]},
		Budget:      l.Budget,
	})
}
